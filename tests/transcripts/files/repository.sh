# A repository with one commit: an engine whose decode step takes `STEP_NS`. Its bench target is a worker that keeps virtual time.
rmdir .git
git init --quiet
printf '/target\n/programs\nCargo.lock\n' > .gitignore
cat > Cargo.toml <<'TOML'
[package]
name = "engine"
version = "0.1.0"
edition = "2021"

[lib]
path = "engine.rs"
bench = false

[[bench]]
name = "inference"
path = "bench.rs"
harness = false
TOML
printf 'cases = ["decode/p8"]\nmodel = "tiny"\nthreads = 1\n\n[memory]\nruns = 0\n' > infergate.toml
cp "$WORKER_WITHOUT_DEPENDENCIES" bench.rs
echo 'pub const STEP_NS: u64 = 1_000_000;' > engine.rs
git add --all
git commit --quiet --message "An engine"
