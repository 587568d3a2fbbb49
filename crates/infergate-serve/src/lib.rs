//! Any [`Engine`](infergate::engine::Engine) behind an OpenAI-compatible server: completions and chat, streamed or not. One
//! call makes a program of an engine factory:
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     infergate_serve::main(&infergate_serve::timed::load)
//! }
//! ```
//!
//! The engine's own [`Scheduler`](infergate::engine::Scheduler) serves on a thread of its own; HTTP runs on another one. A
//! token is written as soon as the step that made it returns. Decoding is greedy and ignores end-of-sequence, so that every
//! request gets exactly as many tokens as it asks for.

mod answer;
mod command_line;
mod connections;
mod engine_thread;
mod prompt;
mod refusal;
mod request;
mod routes;
mod server;
mod stream;
mod text;
pub mod timed;

pub use command_line::main;
pub use server::{Server, Settings};
