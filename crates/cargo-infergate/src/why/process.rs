//! The frames of one profiled process.

use std::collections::BTreeMap;

use anyhow::Result;
use infergate_core::worker::ProfileModule;

use super::image::{Frame, Image};
use super::stacks::{Record, read};

/// The most frames of a stack that are followed.
const MOST_FRAMES: usize = 200;

/// Programs and libraries by their path; `None` for a file that is none.
pub type Images = BTreeMap<String, Option<Image>>;

/// A module, where what lies at zero in its file was loaded, and that file.
type Loaded<'a> = (&'a ProfileModule, u64, &'a Image);

/// Each record's frames, innermost first. One that lies in no file of code has none.
pub fn each_stack(
    modules: &[ProfileModule],
    images: &Images,
    bytes: &[u8],
    mut each: impl FnMut(&[Frame]),
) -> Result<()> {
    let mut loaded: Vec<Loaded> = Vec::new();
    for module in modules {
        let image = images.get(&module.path).and_then(Option::as_ref);
        loaded.extend(image.and_then(|image| Some((module, image.base(module)?, image))));
    }
    let frame = |address: u64| {
        let (_, base, image) = loaded.iter().find(|(module, ..)| (module.from..module.to).contains(&address))?;
        Some(image.frame(address.wrapping_sub(*base)))
    };
    for addresses in native::addresses(&loaded, &read(bytes)?) {
        let frames: Vec<Frame> = addresses.into_iter().filter_map(frame).collect();
        each(&frames);
    }
    Ok(())
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod native {
    use std::rc::Rc;

    use framehop::{CacheNative, MayAllocateDuringUnwind, Module, UnwindRegsNative, Unwinder as _, UnwinderNative};

    use super::{Loaded, MOST_FRAMES, Record};

    /// Of each record the place that runs, then those that it returns to, each as an address within the call.
    pub fn addresses(modules: &[Loaded], records: &[Record]) -> Vec<Vec<u64>> {
        let mut unwinder = UnwinderNative::<Rc<[u8]>, MayAllocateDuringUnwind>::new();
        for (module, base, image) in modules {
            unwinder.add_module(Module::new(module.path.clone(), module.from..module.to, *base, *image));
        }
        let mut cache = CacheNative::new();
        let mut of_record = |record: &Record| {
            let mut read = |address| record.read(address);
            let mut frames = unwinder.iter_frames(record.instruction, registers(record), &mut cache, &mut read);
            let mut found = Vec::new();
            while let (Ok(Some(frame)), true) = (frames.next(), found.len() < MOST_FRAMES) {
                found.push(frame.address_for_lookup());
            }
            found
        };
        records.iter().map(&mut of_record).collect()
    }

    #[cfg(target_arch = "x86_64")]
    fn registers(record: &Record) -> UnwindRegsNative {
        UnwindRegsNative::new(record.instruction, record.stack_pointer, record.frame_pointer)
    }

    #[cfg(target_arch = "aarch64")]
    fn registers(record: &Record) -> UnwindRegsNative {
        UnwindRegsNative::new(record.link, record.stack_pointer, record.frame_pointer)
    }
}

/// No worker is profiled here, so nothing is unwound.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod native {
    use super::{Loaded, Record};

    pub fn addresses(_: &[Loaded], _: &[Record]) -> Vec<Vec<u64>> {
        Vec::new()
    }
}
