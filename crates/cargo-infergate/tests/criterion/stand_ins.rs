//! Packages that take criterion's place, or through which a bench takes it: in the repository that the tests of plain criterion use.

use crate::as_they_are::{MANIFEST, gate};
use crate::repositories::commit;
use crate::sandbox::{Sandbox, stdout};

/// A workspace whose members take other packages for criterion, one of which calls itself criterion, or take it through another member.
pub fn what_takes_criterions_place_is_gated_too(sandbox: &Sandbox) {
    let before = std::fs::read_to_string(sandbox.path("Cargo.toml")).expect("a manifest");
    let manifest = |name: &str, rest: &str| {
        sandbox.write(
            &format!("{name}/Cargo.toml"),
            &format!("[package]\nname = '{name}'\nversion = '3.0.1'\nedition = '2021'\n{rest}"),
        );
        sandbox.write(&format!("{name}/src/lib.rs"), "");
    };
    manifest("codspeed-criterion-compat", "");
    manifest("criterion", "");
    let bench = "[[bench]]\nname = 'all'\nharness = false\n[dev-dependencies]\n";
    // Its benches name one of both.
    let both = "codspeed-criterion-compat.workspace = true\ncriterion = { path = '../criterion' }\n";
    manifest("other", &format!("{bench}{both}"));
    let text = "use criterion::{criterion_group, criterion_main, Criterion};\n\nfn all(c: &mut Criterion) {\n    \
                c.bench_function(\"one\", |b| b.iter(|| std::hint::black_box(1) + 1));\n}\n\ncriterion_group!(benches, all);\ncriterion_main!(benches);\n";
    sandbox.write("other/benches/all.rs", &text.replace("use criterion", "use codspeed_criterion_compat"));
    // A macro of another member writes the benches and their main.
    manifest("macros", "[dependencies]\ncriterion.workspace = true\n");
    let library = "pub use criterion;\n\n#[macro_export]\nmacro_rules! benches {\n    ($name:ident) => {\n        \
                   fn all(c: &mut $crate::criterion::Criterion) {\n            \
                   c.bench_function(\"one\", |b| b.iter(|| std::hint::black_box(1) + 1));\n        }\n        \
                   $crate::criterion::criterion_group!($name, all);\n        $crate::criterion::criterion_main!($name);\n    };\n}\n";
    sandbox.write("macros/src/lib.rs", library);
    let two = format!("[[bench]]\nname = 'more'\nharness = false\n{bench}");
    manifest("of_macro", &format!("{two}macros = {{ path = '../macros' }}\n"));
    for name in ["all", "more"] {
        sandbox.write(&format!("of_macro/benches/{name}.rs"), "macros::benches!(all_of_them);\n");
    }
    let dependencies = "[workspace.dependencies]\ncriterion = '0.5'\ncodspeed-criterion-compat = { path = 'codspeed-criterion-compat' }\n";
    let workspace = format!("{MANIFEST}\n[workspace]\nmembers = ['other', 'of_macro']\n{dependencies}");
    commit(sandbox, "Cargo.toml", &workspace, "a workspace");
    for package in ["other", "of_macro"] {
        let package = format!("--bench-package={package}");
        let said = gate(sandbox, &[&package, "--bench-target=all", "--quick", "--time-same-code"]).success();
        assert!(stdout(&said).lines().any(|line| line.starts_with("one ")), "{}", stdout(&said));
    }
    // The second bench target finds the front in the checkout already.
    let said =
        gate(sandbox, &["--bench-package=of_macro", "--bench-target=*", "--quick", "--time-same-code"]).success();
    assert!(stdout(&said).contains("all/one") && stdout(&said).contains("more/one"), "{}", stdout(&said));
    commit(sandbox, "Cargo.toml", &before, "none");
}
