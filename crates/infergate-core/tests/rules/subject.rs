//! What a row is about: every subject survives its text.

use infergate_core::case::Case;
use infergate_core::receipt::Subject;

#[test]
fn a_subject_reads_as_it_prints() {
    let case: Case = "decode/p128".parse().expect("a case");
    let named: Subject = "load:decode/p128".parse().expect("a level");
    assert_eq!(named, Subject::Load("decode/p128".into()));
    let bench: Subject = "bench:decode/p128".parse().expect("a bench");
    assert_eq!((bench.to_string().as_str(), bench.id().as_str()), ("decode/p128", "bench:decode/p128"));
    for (id, spelled) in [
        ("decode/p128", "decode/p128"),
        ("bench:fib/20", "fib/20"),
        ("bench:a b", "a b"),
        ("bench:decode/p128", "bench:decode/p128"),
        ("bench:decode/all", "bench:decode/all"),
        ("bench:model", "bench:model"),
        ("bench:bench:x", "bench:bench:x"),
        ("bench:--cases", "bench:--cases"),
        ("load:chat/8 users", "load:chat/8 users"),
    ] {
        let subject: Subject = id.parse().expect("a subject");
        assert_eq!(subject.spelled(), spelled);
        assert_eq!(Subject::named(spelled).expect("a name"), subject, "{spelled}");
    }
    assert!(Subject::named("decode/128").is_err(), "a slip");
    assert_ne!(bench, Subject::Case(case), "somebody else's bench may be spelled like a case of ours");
    assert_eq!(serde_json::from_str::<Subject>(&serde_json::to_string(&bench).expect("text")).expect("a bench"), bench);
    assert_eq!((named.case(), Subject::Case(case).case()), (None, Some(case)));
}
