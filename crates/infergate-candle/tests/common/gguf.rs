//! A GGUF file written by hand, sound or not.

/// A metadata value.
#[derive(Debug, Clone)]
pub enum Value {
    Number(u32),
    Text(String),
    Texts(Vec<String>),
    Numbers(Vec<i32>),
    Floats(Vec<f32>),
}

/// Metadata, and whatever is put behind it.
#[derive(Debug, Clone, Default)]
pub struct GgufFile {
    metadata: Vec<(String, Value)>,
}

impl GgufFile {
    /// With `key` set to `value`.
    pub fn with(self, key: &str, value: Value) -> Self {
        let mut file = self.without(key);
        file.metadata.push((key.to_owned(), value));
        file
    }

    /// Without `key`.
    pub fn without(mut self, key: &str) -> Self {
        self.metadata.retain(|(k, _)| k != key);
        self
    }

    /// The file: version 3, no weights.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(3_u32.to_le_bytes());
        out.extend(0_u64.to_le_bytes());
        out.extend((self.metadata.len() as u64).to_le_bytes());
        for (key, value) in &self.metadata {
            text(&mut out, key);
            match value {
                Value::Number(n) => {
                    out.extend(4_u32.to_le_bytes());
                    out.extend(n.to_le_bytes());
                }
                Value::Text(t) => {
                    out.extend(8_u32.to_le_bytes());
                    text(&mut out, t);
                }
                Value::Texts(list) => {
                    array(&mut out, 8, list.len());
                    list.iter().for_each(|t| text(&mut out, t));
                }
                Value::Floats(list) => {
                    array(&mut out, 6, list.len());
                    list.iter().for_each(|n| out.extend(n.to_le_bytes()));
                }
                Value::Numbers(list) => {
                    array(&mut out, 5, list.len());
                    list.iter().for_each(|n| out.extend(n.to_le_bytes()));
                }
            }
        }
        out.resize(out.len().next_multiple_of(32), 0);
        out
    }
}

fn array(out: &mut Vec<u8>, kind: u32, len: usize) {
    out.extend(9_u32.to_le_bytes());
    out.extend(kind.to_le_bytes());
    out.extend((len as u64).to_le_bytes());
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}
