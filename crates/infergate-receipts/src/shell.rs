//! Commands that a reader copies into a shell. What a file says of itself becomes one word of such a command, or none of it.

use infergate_core::printable::printable;

/// `value` as one word for a shell. `None` where it cannot stand on a line as it is: a line end, characters that nobody sees, too
/// many of them.
pub fn word(value: &str) -> Option<String> {
    if printable(value) != value {
        return None;
    }
    Some(shlex::try_quote(value).ok()?.into_owned())
}

/// ` --name VALUE`. A value that begins with a dash would be a flag of its own behind a space.
pub fn flag(name: &str, value: &str) -> Option<String> {
    let between = if value.starts_with('-') { '=' } else { ' ' };
    Some(format!(" --{name}{between}{}", word(value)?))
}
