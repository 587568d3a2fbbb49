//! Structs whose fields are keys: each line is a field with its type, its default and its key.

use std::path::PathBuf;

use anyhow::{Result, bail};

use super::keys::Value;
use crate::case::Case;

/// What a key's value can be put into.
pub trait FromValue: Sized {
    /// From a value that is of the key's kind.
    ///
    /// # Errors
    /// A value that its kind allows and its meaning does not.
    fn from_value(value: &Value) -> Result<Self>;
}

macro_rules! from_value {
    ($($kind:ident($type:ty)),*) => {
        $(impl FromValue for $type {
            fn from_value(value: &Value) -> Result<Self> {
                if let Value::$kind(value) = value { Ok(value.clone()) } else { bail!("{value:?} is not of its kind") }
            }
        })*
    };
}
from_value!(Text(String), Count(u64), Number(f64), Switch(bool), List(Vec<String>));

impl FromValue for usize {
    fn from_value(value: &Value) -> Result<Self> {
        Ok(value.to::<u64>()?.try_into()?)
    }
}

impl FromValue for u32 {
    fn from_value(value: &Value) -> Result<Self> {
        Ok(value.to::<u64>()?.try_into()?)
    }
}

impl FromValue for PathBuf {
    fn from_value(value: &Value) -> Result<Self> {
        Ok(value.to::<String>()?.into())
    }
}

impl FromValue for Case {
    fn from_value(value: &Value) -> Result<Self> {
        value.to::<String>()?.parse()
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Result<Self> {
        value.to().map(Some)
    }
}

/// Makes such a struct, its `Default`, and `put`, which takes the value of a key of its own.
#[macro_export]
macro_rules! settings {
    ($(#[$about:meta])* $name:ident {
        $($(#[$doc:meta])* $field:ident: $type:ty = $default:expr $(, $key:literal)?;)*
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $name {
            /// Takes the value of a key of its own; whether it is one.
            pub fn put(&mut self, key: &$crate::config::keys::Key, value: &$crate::config::keys::Value) -> anyhow::Result<bool> {
                match key.name {
                    $($($key => self.$field = value.to()?,)?)*
                    _ => return Ok(false),
                }
                Ok(true)
            }
        }
    };
}
