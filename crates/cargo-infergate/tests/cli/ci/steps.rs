//! The steps of a composite action, run as GitHub runs them: each `run` in a bash of its own, expressions only where a step says so.
//! What another action does is written down. An expression that is not known here ends the test.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::ci::place::{Place, root, stderr, stdout};
use crate::ci::yaml::{parse, text, texts};

/// A job in which one action is used.
pub struct Job<'a> {
    place: &'a Place,
    /// What expressions stand for: `github.event_name`, `inputs.against`, `steps.base.outputs.key`.
    values: BTreeMap<String, String>,
    /// Each other action that was used: its name without the commit, and its inputs.
    pub used: Vec<(String, BTreeMap<String, String>)>,
    /// The exit code of the first step that failed.
    pub failed: Option<i32>,
    /// What all steps said.
    pub said: String,
}

impl<'a> Job<'a> {
    /// With what GitHub says of an action that is pinned by `revision`, in a run of a pull request.
    pub fn new(place: &'a Place, revision: &str) -> Self {
        let values = [
            ("github.action_ref", revision),
            ("github.action_repository", "infergate/infergate"),
            ("github.server_url", "https://github.com"),
            ("github.repository", "o/r"),
            ("github.token", "a token"),
            ("github.event_name", "pull_request"),
            ("github.ref", "refs/pull/5/merge"),
            ("github.event.repository.default_branch", "main"),
        ];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        Self { place, values, used: Vec::new(), failed: None, said: String::new() }
    }

    pub fn set(&mut self, values: &[(&str, &str)]) {
        self.values.extend(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    }

    /// Runs the action that lies in `folder` of this repository.
    pub fn run(&mut self, folder: &str) {
        let path = root().join(folder).join("action.yml");
        let name = path.display().to_string();
        let action = parse(&name, &std::fs::read_to_string(&path).expect("an action"));
        assert_eq!(action["runs"]["using"].as_str(), Some("composite"));
        for (input, says) in action["inputs"].as_object().into_iter().flatten() {
            self.values.entry(format!("inputs.{input}")).or_insert_with(|| text(&says["default"]));
        }
        for step in action["runs"]["steps"].as_array().expect("steps") {
            self.step(step, folder);
        }
    }

    fn step(&mut self, step: &Value, folder: &str) {
        let wanted = match step["if"].as_str() {
            None => self.failed.is_none(),
            Some(wanted) => {
                let wanted = wanted.trim_start_matches("${{ ").trim_end_matches(" }}");
                (self.failed.is_none() || wanted.contains("cancelled()")) && self.is_true(wanted)
            }
        };
        if !wanted {
            return;
        }
        if let Some(uses) = step["uses"].as_str() {
            let with = texts(&step["with"]).into_iter().map(|(name, value)| (name, self.fill(&value))).collect();
            self.used.push((uses.split('@').next().unwrap_or(uses).to_owned(), with));
            return;
        }
        assert_eq!(step["shell"].as_str(), Some("bash"), "{step}");
        self.place.write("output.txt", "");
        let mut bash = self.place.process("bash");
        bash.args(["--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"].as_str().expect("a script")]);
        if let Some(below) = step["working-directory"].as_str() {
            bash.current_dir(self.place.path("work").join(self.fill(below)));
        }
        bash.env("GITHUB_ACTION_PATH", root().join(folder)).env("RUNNER_TEMP", self.place.path("runner"));
        bash.env("GITHUB_OUTPUT", self.place.path("output.txt"));
        bash.env("GITHUB_STEP_SUMMARY", self.place.path("summary.md"));
        bash.envs(texts(&step["env"]).into_iter().map(|(name, value)| (name, self.fill(&value))));
        let output = bash.output().expect("bash");
        self.said += &(stdout(&output) + &stderr(&output));
        if !output.status.success() {
            self.failed = self.failed.or(output.status.code());
        }
        let id = step["id"].as_str().unwrap_or_default();
        for line in self.place.read("output.txt").lines() {
            let (name, value) = line.split_once('=').expect("an output");
            self.values.insert(format!("steps.{id}.outputs.{name}"), value.to_owned());
        }
    }

    /// `text` with what its expressions stand for.
    fn fill(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("${{ ") {
            let (expression, behind) = behind.split_once(" }}").expect("the end of an expression");
            let is_question = expression.contains("==");
            filled += before;
            filled += &if is_question { self.is_true(expression).to_string() } else { self.value(expression) };
            rest = behind;
        }
        filled + rest
    }

    fn is_true(&self, expression: &str) -> bool {
        expression.split(" && ").all(|part| match (part.split_once(" == "), part.split_once(" != ")) {
            (Some((one, other)), None) => self.value(one) == self.value(other),
            (None, Some((one, other))) => self.value(one) != self.value(other),
            _ => part == "!cancelled()" || panic!("not known here: {part}"),
        })
    }

    fn value(&self, term: &str) -> String {
        if let Some(literal) = term.strip_prefix('\'') {
            return literal.trim_end_matches('\'').to_owned();
        }
        if let Some(arguments) = term.strip_prefix("format('") {
            let (format, argument) = arguments.trim_end_matches(')').split_once("', ").expect("a format");
            return format.replace("{0}", &self.value(argument));
        }
        // As GitHub has it, a step that set no such output is the empty text.
        let of_step = term.starts_with("steps.").then(String::new);
        self.values.get(term).cloned().or(of_step).unwrap_or_else(|| panic!("not known here: {term}"))
    }
}
