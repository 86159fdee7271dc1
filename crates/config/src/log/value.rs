//! What a field of a log line can hold.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::urls::Url;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    Int(i64),
    Uint(u64),
    Float(f64),
    Bool(bool),
    /// Printed as Go prints it: `2.83ms`.
    Duration(Duration),
    List(Vec<String>),
}

impl Value {
    /// Whatever can be shown: errors above all.
    pub fn show(shown: &dyn Display) -> Self {
        Self::Text(shown.to_string())
    }

    /// An id as etcd prints it: hexadecimal, lower case, unpadded.
    pub fn hex(id: u64) -> Self {
        Self::Text(format!("{id:x}"))
    }
}

macro_rules! from {
    ($($source:ty => $make:expr;)*) => {
        $(impl From<$source> for Value {
            fn from(value: $source) -> Self {
                let make: fn($source) -> Value = $make;
                make(value)
            }
        })*
    };
}

from! {
    String => Value::Text;
    &String => |text| Value::Text(text.clone());
    &str => |text| Value::Text(text.into());
    &Path => |path| Value::Text(path.display().to_string());
    &PathBuf => |path| Value::Text(path.display().to_string());
    i64 => Value::Int;
    i32 => |number| Value::Int(number.into());
    u64 => Value::Uint;
    u32 => |number| Value::Uint(number.into());
    u16 => |number| Value::Uint(number.into());
    usize => |number| Value::Uint(number as u64);
    f64 => Value::Float;
    bool => Value::Bool;
    Duration => Value::Duration;
    Vec<String> => Value::List;
    &[String] => |list| Value::List(list.to_vec());
    &Vec<String> => |list| Value::List(list.clone());
    &[&str] => |list| Value::List(list.iter().map(|text| text.to_string()).collect());
    &[Url] => |urls| Value::List(crate::urls::texts(urls));
    &Vec<Url> => |urls| Value::List(crate::urls::texts(urls));
}
