//! Packed texts: zstd with a checksum, and a label at the end that is read without unpacking anything.
//!
//! Any zstd program unpacks such a file: the label is a frame of the kind that the format lets everybody skip. It knows
//! nothing of files or of what the texts are, and holds no text in memory beyond the window of the format.
//!
//! Entry points: [`Packer`] writes, [`Unpacker`] reads, [`Label`] is what stands at the end.

mod label;
mod stream;

pub use label::Label;
pub use stream::{Packer, Unpacker};

#[cfg(test)]
mod tests;
