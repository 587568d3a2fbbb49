//! Which benchmark frameworks a package's benches use: criterion, divan, what takes their place elsewhere, and infergate's fronts.

use std::collections::BTreeSet;
use std::path::Path;

use infergate_core::text_file::read_text;

use super::package::{Dependency, Package};

/// The front's package.
pub const PACKAGE: &str = "infergate-criterion";
pub const DIVAN: &str = "infergate-divan";

/// What a front stands for: criterion and what takes its place elsewhere, and divan.
pub const FRONTS: [(&str, &str); 6] = [
    ("criterion", PACKAGE),
    (CODSPEED, PACKAGE),
    ("codspeed-criterion-compat-walltime", PACKAGE),
    ("divan", DIVAN),
    ("codspeed-divan-compat", DIVAN),
    ("codspeed-divan-compat-walltime", DIVAN),
];

pub const CODSPEED: &str = "codspeed-criterion-compat";

/// What a bench that can be measured has in its text.
const NAMED: [&str; 2] = ["criterion", "divan"];

/// No source file is larger.
const MAX_SOURCE_BYTES: u64 = 16 << 20;
/// Modules of a bench target that are looked at.
const MOST_MODULES: usize = 100;

/// Whether a package, as cargo describes it, takes criterion from where everybody does, or through a helper.
pub fn takes_criterion(package: &Package) -> bool {
    names(package).any(|name| front(name).is_some()) || !package.helpers.is_empty()
}

/// Finds the helpers of each package of a workspace: those with criterion for all who take them, and what has one of those. Helpers to
/// which a front was put are told apart: their benches need no other.
pub fn note_helpers(packages: &mut [Package]) {
    let plain = helpers(packages, |name| front(name).is_some());
    let all = helpers(packages, |name| front(name).is_some() || name == PACKAGE || name == DIVAN);
    for (package, (plain, all)) in packages.iter_mut().zip(plain.into_iter().zip(all)) {
        (package.helpers, package.front_helpers) = (plain, all);
    }
}

/// Those of each package, by which packages are criterion.
fn helpers(packages: &[Package], is_criterion: impl Fn(&str) -> bool) -> Vec<BTreeSet<String>> {
    let mut helpers: BTreeSet<String> = BTreeSet::new();
    let is_helper = |helpers: &BTreeSet<String>, one: &Dependency| one.path.is_some() && helpers.contains(&one.name);
    loop {
        let gives = |one: &Dependency| one.kind.is_none() && (is_criterion(&one.name) || is_helper(&helpers, one));
        let is_new = |package: &&Package| !helpers.contains(&package.name) && package.dependencies.iter().any(gives);
        let new: Vec<String> = packages.iter().filter(is_new).map(|package| package.name.clone()).collect();
        if new.is_empty() {
            break;
        }
        helpers.extend(new);
    }
    let of_package = |package: &Package| {
        let taken = package.dependencies.iter().filter(|one| is_helper(&helpers, one));
        let taken = taken.map(|one| one.rename.as_ref().unwrap_or(&one.name));
        let own = package.targets.iter().find(|target| target.is("lib")).map(|library| &library.name);
        let all = taken.chain(own.filter(|_| helpers.contains(&package.name)));
        all.map(|name| name.replace('-', "_")).collect()
    };
    packages.iter().map(of_package).collect()
}

/// Whether it takes it from infergate, or is infergate.
pub fn takes_infergate(package: &Package) -> bool {
    let is_own = |name: &str| name == "infergate" || name == PACKAGE || name == DIVAN;
    is_own(&package.name) || names(package).any(is_own)
}

/// The front that takes the place of a package.
pub fn front(package: &str) -> Option<&'static str> {
    FRONTS.into_iter().find(|(name, _)| *name == package).map(|(_, front)| front)
}

fn names(package: &Package) -> impl Iterator<Item = &str> {
    package.dependencies.iter().map(|one| one.name.as_str())
}

/// The text of a package's bench target: of its first file, and, where that names neither criterion nor divan, of the modules beside it.
pub fn source(package: &Package, bench: &str) -> Option<String> {
    let path = &package.bench(bench)?.src_path;
    let mut text = read_text(path, MAX_SOURCE_BYTES).ok()?;
    if names_ours(&text) {
        return Some(text);
    }
    let module = |line: &str| {
        Some(line.trim().trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';')?.trim().to_owned())
    };
    let modules: Vec<String> = text.lines().filter_map(module).take(MOST_MODULES).collect();
    let folder = path.parent().unwrap_or(Path::new(""));
    for name in modules {
        let places = [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")];
        let its = places.iter().find_map(|place| read_text(place, MAX_SOURCE_BYTES).ok());
        text.extend(its.map(|its| format!("\n{its}")));
    }
    Some(text)
}

/// Whether the benches of a package name CodSpeed's criterion and never criterion itself.
pub fn is_of_codspeed(package: &Package) -> bool {
    let text: String = package.benches().filter_map(|bench| source(package, &bench.name)).collect();
    let rest = text.replace("codspeed_criterion_compat", "");
    rest != text && !["criterion::", "crate criterion"].iter().any(|name| rest.contains(name))
}

/// Whether a bench's text names criterion or divan.
pub fn names_ours(text: &str) -> bool {
    NAMED.iter().any(|name| text.contains(name))
}

/// Whether a bench's text speaks of criterion or divan. What it includes may, and what a macro of a helper makes of it if that writes its
/// `main`, too.
pub fn uses_ours(text: &str, helpers: &BTreeSet<String>) -> bool {
    let by_helper = || !text.contains("fn main") && helpers.iter().any(|name| text.contains(&format!("{name}::")));
    names_ours(text) || text.contains("include!(") || by_helper()
}
