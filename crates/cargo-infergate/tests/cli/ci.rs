//! The scripts of `gate/` and `comment/`. Servers, cargo and the engine are small programs that answer from files.

mod base;
mod comment;
mod install;
mod place;
mod run;
