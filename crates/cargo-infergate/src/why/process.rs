//! One process that was looked at: its records as frames.

use std::collections::BTreeMap;

use anyhow::Result;
use infergate_core::worker::ProfileModule;

use super::image::{Frame, Image};
use super::stacks::{self, Record};

/// Frames of a stack that are followed.
const MOST_FRAMES: usize = 200;

/// Programs and libraries by their path; `None` for a file that is none.
pub type Images = BTreeMap<String, Option<Image>>;

/// Where everything lies in one process.
pub struct Process<'a> {
    modules: Vec<(&'a ProfileModule, u64, &'a Image)>,
}

impl<'a> Process<'a> {
    /// Of the modules of which the program can be read.
    pub fn new(modules: &'a [ProfileModule], images: &'a Images) -> Self {
        let image = |module: &'a ProfileModule| {
            let image = images.get(&module.path)?.as_ref()?;
            Some((module, image.base(module)?, image))
        };
        Self { modules: modules.iter().filter_map(image).collect() }
    }

    /// Each record's frames, innermost first. One that lies in no file of code has none.
    pub fn stacks(&self, bytes: &[u8], mut each: impl FnMut(&[Frame])) -> Result<()> {
        let mut unwinder = self.unwinder();
        for record in stacks::read(bytes)? {
            let frames: Vec<Frame> = unwinder.addresses(&record).into_iter().filter_map(|at| self.frame(at)).collect();
            each(&frames);
        }
        Ok(())
    }

    fn frame(&self, address: u64) -> Option<Frame> {
        let holds = |(module, ..): &&(&ProfileModule, u64, &Image)| (module.from..module.to).contains(&address);
        let (_, base, image) = self.modules.iter().find(holds)?;
        Some(image.frame(address.wrapping_sub(*base)))
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod native {
    use std::rc::Rc;

    use framehop::{CacheNative, MayAllocateDuringUnwind, Module, UnwindRegsNative, Unwinder as _, UnwinderNative};

    use super::{MOST_FRAMES, Process, Record};

    pub struct Unwinder {
        unwinder: UnwinderNative<Rc<[u8]>, MayAllocateDuringUnwind>,
        cache: CacheNative<MayAllocateDuringUnwind>,
    }

    impl Process<'_> {
        pub(super) fn unwinder(&self) -> Unwinder {
            let mut unwinder = UnwinderNative::new();
            for (module, base, image) in &self.modules {
                unwinder.add_module(Module::new(module.path.clone(), module.from..module.to, *base, *image));
            }
            Unwinder { unwinder, cache: CacheNative::new() }
        }
    }

    impl Unwinder {
        /// The place that runs, then those that it returns to, each as an address within the call.
        pub fn addresses(&mut self, record: &Record) -> Vec<u64> {
            let mut read = |address| record.read(address);
            let mut frames =
                self.unwinder.iter_frames(record.instruction, registers(record), &mut self.cache, &mut read);
            let mut found = Vec::new();
            while let (Ok(Some(frame)), true) = (frames.next(), found.len() < MOST_FRAMES) {
                found.push(frame.address_for_lookup());
            }
            found
        }
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

/// Where no worker is looked at, nothing is unwound.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod native {
    use super::{Process, Record};

    pub struct Unwinder;

    impl Process<'_> {
        pub(super) fn unwinder(&self) -> Unwinder {
            Unwinder
        }
    }

    impl Unwinder {
        pub fn addresses(&mut self, record: &Record) -> Vec<u64> {
            vec![record.instruction]
        }
    }
}
