//! Pictures, each a file that makes charts of the inputs. A new one is a file here and a line in [`PICTURES`].

mod blocks;
mod changes;
mod itl;
mod llama_bench;
mod load;
mod memory;
mod roofline;
mod timeline;
mod ttft;
mod vllm;

use super::inputs::Inputs;
use super::model::Chart;

/// Makes charts of what was measured, or none.
type Picture = fn(&Inputs) -> Vec<Chart>;

/// The section each stands in, and who makes it.
const PICTURES: &[(&str, Picture)] = &[
    ("verdict", changes::charts),
    ("blocks", blocks::charts),
    ("request", timeline::charts),
    ("request", itl::charts),
    ("latency", roofline::charts),
    ("scaling", ttft::charts),
    ("memory", memory::charts),
    ("llama_bench", llama_bench::charts),
    ("load_users", load::users::charts),
    ("load_decode", load::decode_speed::charts),
    ("load_scaling", load::scaling::charts),
    ("load_targets", load::targets::charts),
    ("load_winners", load::winners::charts),
    ("load_stability", load::stability::charts),
    ("vllm", vllm::charts),
];

/// The charts of the section named `id`.
pub fn of(id: &str, inputs: &Inputs) -> Vec<Chart> {
    PICTURES.iter().filter(|(section, _)| *section == id).flat_map(|(_, charts)| charts(inputs)).collect()
}
