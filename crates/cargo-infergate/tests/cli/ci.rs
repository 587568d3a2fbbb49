//! What runs in a CI: the scripts of `gate/` and `comment/`, the steps of both actions and the job for GitLab, as their YAML has them.
//! Servers, cargo and the engine are small programs that answer from files.

mod action;
mod base;
mod comment;
mod gitlab;
mod install;
mod place;
mod run;
mod steps;
mod workflows;
mod yaml;
