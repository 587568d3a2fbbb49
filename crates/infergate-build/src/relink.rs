//! Repeats the last link of a bench target, with its functions and constants in another order.
//!
//! A side is built so that the object files of its last crate stay and the compiler prints the linker's command; after that a layout costs
//! one link, without cargo and without a compiler. The next gate of the same commit finds both.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use object::read::archive::ArchiveFile;

use super::keep_objects::command_file;
use super::run_captured::run_captured;
use infergate_core::text_file::{read_bytes, read_text};
use infergate_core::worker::Program;

/// Size limit of a linker's command, bytes.
const MAX_COMMAND_BYTES: u64 = 16 << 20;
/// Size limit of a file of code, bytes: a sparse file can claim any size.
const MAX_CODE_BYTES: u64 = 2 << 30;

/// The bytes of a program, a library or an object file.
///
/// # Errors
/// A file that cannot be read, or is too large.
pub fn read(file: &Path) -> Result<Vec<u8>> {
    read_bytes(file, MAX_CODE_BYTES)
}

/// The linker's command of a bench target, as the compiler prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linker {
    /// Its environment variables.
    environment: Vec<(String, String)>,
    /// The linker, then its arguments.
    words: Vec<String>,
    /// The program that cargo built with it.
    built: PathBuf,
    /// Where the compiler ran.
    root: PathBuf,
}

impl Linker {
    /// The linker command of `built`, which was built in the workspace at `root` so that its objects stay.
    ///
    /// # Errors
    /// If the objects did not stay, or are missing.
    pub fn capture(root: &Path, built: &Program) -> Result<Self> {
        let command = || {
            let text = read_text(&command_file(&built.path)?, MAX_COMMAND_BYTES).ok()?;
            Self::of(&text, built.path.clone(), root.to_owned()).filter(Self::has_its_objects)
        };
        command().context("the last crate does not build with its object files kept")
    }

    /// Whether the object files that it links are still there: before Rust 1.94 one lies where temporary files do.
    fn has_its_objects(&self) -> bool {
        let is_there = |word: &String| !(word.starts_with('/') && word.ends_with(".o")) || Path::new(word).exists();
        self.words.iter().all(is_there)
    }

    /// Parses a printed linker command, `NAME="value" "program" "argument"`, that made the program `built`. It is quoted as in JSON as far
    /// as paths need it, but apostrophes are escaped, too. `None` for other text.
    pub fn of(printed: &str, built: PathBuf, root: PathBuf) -> Option<Self> {
        let mut command = Self { environment: Vec::new(), words: Vec::new(), built, root };
        let printed = printed.replace("\\'", "'");
        let mut rest = printed.trim();
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

    /// The linker's inputs: the arguments of its command, without its output.
    ///
    /// # Errors
    /// A file that cannot be read, or is no object file and no archive.
    pub fn inputs(&self) -> Result<Inputs> {
        let output = self.words.iter().position(|word| word == "-o").context("the linker makes no program")?;
        let words =
            [1..output, output + 2..self.words.len()].map(|range| self.words.get(range).unwrap_or_default()).concat();
        let folders: Vec<PathBuf> =
            words.windows(2).filter(|pair| pair[0] == "-L").map(|pair| self.root.join(&pair[1])).collect();
        let mut is_static = false;
        let read = |word: String| {
            is_static = word == "-Wl,-Bstatic" || is_static && word != "-Wl,-Bdynamic";
            // A static library that a build script made is given by name. If a shared one is next to it, as for the system's libraries, the
            // linker takes that.
            let library = word.strip_prefix("-l").map(|name| format!("lib{name}.a"));
            let is_taken = |path: &PathBuf| path.is_file() && (is_static || !path.with_extension("so").exists());
            let found = library.and_then(|library| folders.iter().map(|folder| folder.join(&library)).find(is_taken));
            let is_file = |path: &PathBuf| path.is_absolute() && !path.is_dir() && !folders.contains(path);
            // Only an option is a list: a path can have a comma in it.
            let is_option = word.starts_with('-');
            let parts = word.split(|letter: char| is_option && letter == ',').map(PathBuf::from);
            let files = parts.filter(is_file).chain(found);
            let objects = files.map(|path| objects(&path)).collect::<Result<Vec<_>>>()?.concat();
            Ok((word, objects))
        };
        let words = words.into_iter().map(read).collect::<Result<_>>()?;
        Ok(Inputs { words, linker: self.words[0].clone(), root: self.root.clone() })
    }

    /// The bytes of the program that cargo built.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn built(&self) -> Result<Vec<u8>> {
        read(&self.built)
    }

    /// Links with the arguments `words` into `to`, in the folder where the compiler ran; false if the linker refuses. The list of
    /// arguments, which may be too long for a command line, is written into the absolute `folder`.
    ///
    /// # Errors
    /// A list that cannot be written; the user ended the run.
    pub fn link(&self, words: &[String], folder: &Path, to: &Path) -> Result<bool> {
        let list = folder.join("words");
        let quoted = |word: &String| format!("\"{}\"\n", word.replace('\\', "\\\\").replace('"', "\\\""));
        fs::write(&list, words.iter().map(quoted).collect::<String>())
            .context("the linker's words cannot be written")?;
        let mut command = Command::new(&self.words[0]);
        command.arg(format!("@{}", list.display())).arg("-o").arg(to).current_dir(&self.root);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        Ok(run_captured(command)?.status.success() && to.is_file())
    }
}

/// A linker's inputs.
pub struct Inputs {
    /// Its arguments, each with the object files in the file that it names.
    pub words: Vec<(String, Vec<Vec<u8>>)>,
    linker: String,
    /// Where the compiler ran.
    pub root: PathBuf,
}

impl Inputs {
    /// All object files, in order.
    pub fn objects(&self) -> Vec<&[u8]> {
        self.words.iter().flat_map(|(_, objects)| objects).map(Vec::as_slice).collect()
    }

    /// Arguments that are not files: libraries by name, and how to link. An argument with a path is cut before its first `/`.
    pub fn options(&self) -> Vec<&str> {
        let options = self.words.iter().map(|(word, _)| word).filter(|word| word.starts_with('-'));
        options.filter_map(|word| word.split('/').next()).chain([self.linker.as_str()]).collect()
    }

    /// Whether the program lacks names of functions, or looks for libraries where it was built.
    pub fn hides_code(&self) -> bool {
        const STRIPPED: [&str; 5] = ["-s", "-x", "-X", "--strip-all", "--discard-all"];
        let mut parts = self.words.iter().flat_map(|(word, _)| word.split(','));
        parts.any(|part| STRIPPED.contains(&part) || part.starts_with("-rpath") || part.starts_with("--rpath"))
    }
}

/// The object files in a file: itself, or those of an archive.
fn objects(path: &Path) -> Result<Vec<Vec<u8>>> {
    let bytes = read(path)?;
    let Ok(archive) = ArchiveFile::parse(&*bytes) else { return Ok(vec![bytes]) };
    let members = archive.members().map(|member| Ok(member?.data(&*bytes)?.to_vec()));
    members.collect::<object::Result<_>>().with_context(|| format!("{}: cannot be read", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Linker;

    #[test]
    fn what_the_compiler_prints_is_read() {
        let said =
            r#"LC_ALL="C" PATH="/a b:/usr/bin" "cc" "-m64" "a \\ \"b\"\n\'c\'.o" "" "-o" "/t/bench-1" "-Wl,--gc""#;
        let command = Linker::of(said, "/t/bench-1".into(), "/t".into()).expect("a command");
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(command.environment, [variable("LC_ALL", "C"), variable("PATH", "/a b:/usr/bin")]);
        assert_eq!(command.words, ["cc", "-m64", "a \\ \"b\"\n'c'.o", "", "-o", "/t/bench-1", "-Wl,--gc"]);
        let words: Vec<String> = command.inputs().expect("no file").words.into_iter().map(|(word, _)| word).collect();
        assert_eq!(words, ["-m64", "a \\ \"b\"\n'c'.o", "", "-Wl,--gc"], "without the output");
    }

    /// The C library's `libm.a` is a text that names others.
    #[test]
    fn libraries_by_name_are_read_where_no_shared_one_is_and_folders_may_be_missing() {
        let place = tempfile::tempdir().expect("a folder");
        fs::create_dir(place.path().join("own")).expect("a folder");
        for file in ["own/libm.a", "own/libm.so", "own/libown.a", "a,b.o"] {
            fs::write(place.path().join(file), "GROUP ( libm-2.36.a )").expect("a file");
        }
        let object = place.path().join("a,b.o").to_string_lossy().into_owned();
        let said = format!(
            r#""cc" "{object}" "-L" "own" "-L" "/no/such/folder" "-lm" "-lown" "-Wl,-Bstatic" "-lm" "-Wl,-Bdynamic" "-lm" "-o" "/t/bench-1""#
        );
        let command = Linker::of(&said, "/t/bench-1".into(), place.path().to_owned()).expect("a command");
        let words = command.inputs().expect("files").words;
        let read: Vec<&str> =
            words.iter().filter(|(_, objects)| !objects.is_empty()).map(|(word, _)| word.as_str()).collect();
        assert_eq!(read, [&*object, "-lown", "-lm"], "the linker was told to take the static one");
    }

    #[test]
    fn odd_commands_are_refused() {
        for said in [
            "",
            " \n",
            "cc -o out",
            r#""cc""#,
            r#"A="1" B="2""#,
            // A variable after the program, a word without quotes, quotes that do not end.
            r#""cc" A="1" "-o" "x""#,
            r#""cc" -o "x""#,
            r#""cc" "-o" "x"#,
            r#""cc" "-o\"#,
            // Escapes that no path has.
            r#""cc" "\u{7}" "-o" "x""#,
            r#""cc" "\x41" "-o" "x""#,
        ] {
            assert_eq!(Linker::of(said, "/t/bench-1".into(), "/t".into()), None, "{said}");
        }
    }
}
