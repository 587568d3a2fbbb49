//! The last link of a bench target, done again with its functions and constants in another order.
//!
//! A side is built so that the object files of its last crate stay and the compiler prints the linker's command; after that a layout costs
//! one link, without cargo and without a compiler. The next gate of the same commit finds both. What `cargo bench` builds stays what it is:
//! cargo keeps builds with other arguments for the last call of the compiler under another name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};

use super::bench_target;
use super::{progress, toolchain};
use crate::code;
use crate::wanted::Place;
use crate::workspace::BenchTarget;
use infergate_core::process::Group;
use infergate_core::text_file::read_text;
use infergate_core::worker::ensure_not;

/// No linker's command is longer.
const MAX_COMMAND_BYTES: u64 = 16 << 20;

/// Object files of a bench target, and how they are linked.
pub struct Linker {
    command: LinkCommand,
    /// What cargo built for it.
    built: PathBuf,
}

/// A linker's command, as the compiler prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkCommand {
    /// Variables it is started with.
    pub environment: Vec<(String, String)>,
    /// The program, then its arguments.
    pub words: Vec<String>,
}

/// Arguments for the last call of the compiler, by which its object files stay, and the linker's command in `folder`, which is made. None for
/// a compiler of `sources` that is older than Rust 1.85, whose cargo gives such a build the plain one's name.
///
/// # Errors
/// A folder that cannot be made.
pub fn kept(folder: &Path, sources: &Path) -> Result<Vec<String>> {
    if toolchain::is_older_than(85, sources) {
        return Ok(Vec::new());
    }
    fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
    Ok(vec!["-Csave-temps".to_owned(), format!("--print=link-args={}", printed(folder)?.display())])
}

fn printed(folder: &Path) -> Result<PathBuf> {
    Ok(std::path::absolute(folder)?.join("link-args"))
}

impl Linker {
    /// Of `target`, which was built with the arguments that [`kept`] gives, or is now. `None` when that fails, or `stop` says so before it
    /// ends.
    ///
    /// # Errors
    /// When cargo does not start, or a file cannot be read or written.
    pub fn capture(
        target: &BenchTarget,
        place: &Place,
        folder: &Path,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Self>> {
        let (arguments, printed) = (kept(folder, &place.folder)?, printed(folder)?);
        if arguments.is_empty() {
            return Ok(None);
        }
        let mut is_again = false;
        loop {
            let Ok(built) = bench_target::rebuild(target, place, &arguments, stop)? else { return Ok(None) };
            let text = read_text(&printed, MAX_COMMAND_BYTES).unwrap_or_default();
            let linker = Self::of(&text, built.path.clone()).filter(Self::is_of_its_program);
            if linker.is_some() || is_again {
                return Ok(linker);
            }
            // Cargo found this build done, and the command is that of another one, or gone.
            fs::remove_file(&built.path).with_context(|| format!("{}: cannot be removed", built.path.display()))?;
            is_again = true;
        }
    }

    /// Whether the command makes the program that cargo names: cargo gives that a second name.
    fn is_of_its_program(&self) -> bool {
        let words = &self.command.words;
        let output = words.iter().position(|word| word == "-o").and_then(|at| words.get(at + 1));
        output.is_some_and(|output| Path::new(output).file_name() == self.built.file_name())
    }

    /// Of a linker's command that the compiler printed, and the program that it made; `None` for other text.
    pub fn of(printed: &str, built: PathBuf) -> Option<Self> {
        Some(Self { command: LinkCommand::parse(printed)?, built })
    }

    /// The arguments of the linker's command, without its output and without flags that take the names of functions away.
    pub fn arguments(&self) -> Vec<&String> {
        let takes_names = |word: &str| ["-s", "-Wl,--strip-all", "-Wl,--strip-debug"].contains(&word);
        let words = self.command.words.iter().skip(1).filter(|word| !takes_names(word));
        let mut is_output = false;
        words.filter(|word| !(std::mem::replace(&mut is_output, *word == "-o") || is_output)).collect()
    }

    /// The program with the names of its functions.
    ///
    /// # Errors
    /// One that cannot be read or linked; when it was cancelled.
    pub fn unstripped(&self, folder: &Path, cancelled: &AtomicBool) -> Result<Vec<u8>> {
        let words = &self.command.words;
        if self.arguments().len() + 3 == words.len() {
            return code::read(&self.built);
        }
        let to = folder.join("named");
        let words: Vec<String> = self.arguments().into_iter().cloned().collect();
        ensure!(self.link(&words, folder, &to, cancelled)?, "the program cannot be linked again");
        let read = code::read(&to);
        drop(fs::remove_file(&to));
        read
    }

    /// Links `words` into `to`; false where the linker refuses. `folder` takes the list of words, which may be too long for a command.
    ///
    /// # Errors
    /// A list that cannot be written; when it was cancelled.
    pub fn link(&self, words: &[String], folder: &Path, to: &Path, cancelled: &AtomicBool) -> Result<bool> {
        let list = folder.join("words");
        let quoted = |word: &String| format!("\"{}\"\n", word.replace('\\', "\\\\").replace('"', "\\\""));
        fs::write(&list, words.iter().map(quoted).collect::<String>())
            .context("the linker's words cannot be written")?;
        let mut command = Command::new(&self.command.words[0]);
        command.arg(format!("@{}", list.display())).arg("-o").arg(to);
        command.envs(self.command.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut link = Group::spawn(&mut command).context("the linker cannot be started")?;
        let status = progress::until_ended(&mut link, &|| cancelled.load(Ordering::Relaxed))
            .context("the linker cannot be waited for")?;
        ensure_not(cancelled)?;
        Ok(status.success() && to.is_file())
    }
}

impl LinkCommand {
    /// Reads `NAME="value" "program" "argument"`, quoted as in JSON as far as paths need it. `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let mut command = Self { environment: Vec::new(), words: Vec::new() };
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (name, quoted) = rest.split_at(rest.find('"')?);
            let mut texts = serde_json::Deserializer::from_str(quoted).into_iter::<String>();
            let word = texts.next()?.ok()?;
            rest = quoted[texts.byte_offset()..].trim_start();
            match name.strip_suffix('=') {
                Some(name) if command.words.is_empty() => command.environment.push((name.to_owned(), word)),
                None if name.is_empty() => command.words.push(word),
                _ => return None,
            }
        }
        (command.words.len() > 1).then_some(command)
    }
}

#[cfg(test)]
mod tests {
    use super::{LinkCommand, Linker};

    #[test]
    fn what_the_compiler_prints_is_read() {
        let said =
            r#"LC_ALL="C" PATH="/a b:/usr/bin" "cc" "-m64" "/tmp/a \\ \"b\"\n.o" "" "-o" "/t/bench-1" "-Wl,--gc""#;
        let command = LinkCommand::parse(said).expect("a command");
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(command.environment, [variable("LC_ALL", "C"), variable("PATH", "/a b:/usr/bin")]);
        assert_eq!(command.words, ["cc", "-m64", "/tmp/a \\ \"b\"\n.o", "", "-o", "/t/bench-1", "-Wl,--gc"]);
        let linker = Linker::of(said, "/t/bench-1".into()).expect("a command");
        assert_eq!(linker.arguments(), ["-m64", "/tmp/a \\ \"b\"\n.o", "", "-Wl,--gc"], "without the output");
    }

    #[test]
    fn odd_commands_are_refused() {
        for said in [
            "",
            " \n",
            "cc -o out",
            r#""cc""#,
            r#"A="1" B="2""#,
            // A variable behind the program, a word without quotes, quotes that do not end.
            r#""cc" A="1" "-o" "x""#,
            r#""cc" -o "x""#,
            r#""cc" "-o" "x"#,
            r#""cc" "-o\"#,
            // Escapes that no path has.
            r#""cc" "\u{7}" "-o" "x""#,
            r#""cc" "\x41" "-o" "x""#,
        ] {
            assert_eq!(LinkCommand::parse(said), None, "{said}");
        }
    }
}
