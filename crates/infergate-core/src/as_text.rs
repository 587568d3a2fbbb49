//! Values that stand in files as a text: [`serde_as_text`](crate::serde_as_text).

use serde::Serialize;

/// The name of a value in files, as a person reads it: `within limit` where it is `within_limit` there.
pub fn words(value: impl Serialize) -> String {
    serde_json::to_string(&value).unwrap_or_default().trim_matches('"').replace('_', " ")
}

/// Lets serde write a type as the text that the function gives, and read it back by `FromStr`.
#[macro_export]
macro_rules! serde_as_text {
    ($type:ty, $text:expr) => {
        impl ::serde::Serialize for $type {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> ::std::result::Result<S::Ok, S::Error> {
                serializer.serialize_str(&$text(self))
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $type {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> ::std::result::Result<Self, D::Error> {
                let text = <String as ::serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(|error| ::serde::de::Error::custom(format_args!("{error:#}")))
            }
        }
    };
}
