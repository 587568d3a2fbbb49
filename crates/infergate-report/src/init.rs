//! What `init` adds, as a difference.

use super::model::Tone;
use super::terminal::{bold, paint};
use infergate_receipts::{Init, InitChange, InitFile};

/// Every file with the lines that come to it.
pub fn text(init: &Init, added: &[(InitFile, &str)]) -> String {
    let mut text = String::new();
    for (file, lines) in added {
        let what = match file.change {
            InitChange::New => "new",
            InitChange::Added => "lines added",
            InitChange::Kept => "as it is",
        };
        text += &bold(&format!("{}: {what}", file.path));
        text.push('\n');
        for line in lines.lines() {
            text += &paint(Tone::Good, &format!("+ {line}"));
            text.push('\n');
        }
    }
    if init.dry_run {
        text += "\nnothing was written\n";
    }
    for note in &init.notes {
        text += &format!("- {note}\n");
    }
    text
}
