//! What a packed text says about itself at its end.

/// Of the sixteen marks of frames that are skipped, the one that this program takes.
const SKIPPED: u32 = 0x184D_2A5A;

/// By which our label is known among other frames that are skipped.
const MARK: [u8; 8] = *b"rollout1";

/// What is known of a text without unpacking it. It is for whoever compares it with what they know otherwise: nothing
/// else vouches for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// Whose it is: an id of the writer's.
    pub owner: u128,
    /// Length of the text, in bytes.
    pub bytes: u64,
    /// Number of its last line.
    pub ordinal: u64,
    /// Length of its last line, in bytes.
    pub last_line_bytes: u64,
    /// Checksum of its last line, by whatever the writer uses.
    pub checksum: u64,
}

impl Label {
    /// Its length in the file, in bytes: the frame's head, the mark, the id, four numbers.
    pub const LEN: usize = 8 + MARK.len() + 16 + 32;

    pub(crate) fn frame(&self) -> [u8; Self::LEN] {
        let mut frame = [0; Self::LEN];
        let inside = u32::try_from(Self::LEN - 8).unwrap_or_default();
        let head =
            SKIPPED.to_le_bytes().into_iter().chain(inside.to_le_bytes()).chain(MARK).chain(self.owner.to_le_bytes());
        let numbers = [self.bytes, self.ordinal, self.last_line_bytes, self.checksum];
        let bytes = head.chain(numbers.into_iter().flat_map(u64::to_le_bytes));
        frame.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        frame
    }

    /// The label among the last bytes of a file, if there is one.
    pub fn at_end(bytes: &[u8]) -> Option<Self> {
        let frame: &[u8; Self::LEN] = bytes.last_chunk()?;
        let (owner, numbers) = frame.get(16..)?.split_first_chunk()?;
        let number = |n: usize| Some(u64::from_le_bytes(*numbers.get(8 * n..)?.first_chunk()?));
        let label = Self {
            owner: u128::from_le_bytes(*owner),
            bytes: number(0)?,
            ordinal: number(1)?,
            last_line_bytes: number(2)?,
            checksum: number(3)?,
        };
        (label.frame() == *frame).then_some(label)
    }
}
