//! How blocks are planned and what they are made of.

mod iterations;
mod load_window;
mod pairs;
mod servers;
mod simulated_server;
mod under_load;
