//! How a bench target was chosen and built, beside its name: what the command that measures it again has to say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What cargo was told of a bench target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BuiltWith {
    /// Its package; `null`: that of the folder.
    pub package: Option<String>,
    /// Features of the package.
    pub features: Vec<String>,
    /// Whether its default features were left out.
    pub no_default_features: bool,
    /// The profile; `null`: cargo's own for benches.
    pub profile: Option<String>,
}

impl BuiltWith {
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}
