//! How a bench target makes its engine: [`EngineFactory`].

use anyhow::Result;

use super::{Engine, LoadRequest};

/// Makes engines. A closure `Fn(&LoadRequest) -> Result<Box<dyn Engine + Send>>` is one.
///
/// One that sets the variable from which a crate reads how many threads to start, before its `load` runs:
///
/// ```no_run
/// use anyhow::Result;
/// use infergate::engine::{Engine, EngineFactory, LoadRequest};
///
/// struct Mine;
///
/// impl EngineFactory for Mine {
///     fn load(&self, _request: &LoadRequest) -> Result<Box<dyn Engine + Send>> {
///         todo!("your engine")
///     }
///
///     fn environment(&self, request: &LoadRequest) -> Vec<(String, String)> {
///         vec![("RAYON_NUM_THREADS".into(), request.threads.to_string())]
///     }
/// }
///
/// fn main() -> std::process::ExitCode {
///     infergate::bench::main(&Mine)
/// }
/// ```
pub trait EngineFactory {
    /// Loads the model and returns an engine ready for [`Engine::start`].
    ///
    /// # Errors
    /// One line saying what, where and how to mend it.
    fn load(&self, request: &LoadRequest) -> Result<Box<dyn Engine + Send>>;

    /// Environment variables that must be set before the process starts (thread pools, allocator tunables). A bench
    /// target that finds one unset starts itself again with it; a variable that is set already is the user's choice and stays.
    fn environment(&self, _request: &LoadRequest) -> Vec<(String, String)> {
        Vec::new()
    }
}

impl<F> EngineFactory for F
where
    F: Fn(&LoadRequest) -> Result<Box<dyn Engine + Send>>,
{
    fn load(&self, request: &LoadRequest) -> Result<Box<dyn Engine + Send>> {
        self(request)
    }
}
