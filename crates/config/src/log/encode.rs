//! Lines as zap writes them.

use std::fmt::Write;
use std::time::SystemTime;

use super::{Entry, Value, caller, clock};
use crate::duration::format_duration;

/// `{"level":…,"ts":…,"logger":…,"caller":…,"msg":…,<fields>}` and a line end.
pub(super) fn json(out: &mut String, name: Option<&str>, entry: &Entry, now: SystemTime) {
    out.push_str("{\"level\":");
    quote(out, entry.level.as_str());
    out.push_str(",\"ts\":");
    quote(out, &clock::timestamp(now));
    if let Some(name) = name {
        out.push_str(",\"logger\":");
        quote(out, name);
    }
    out.push_str(",\"caller\":");
    quote(out, &format!("{}:{}", caller::short(entry.file), entry.line));
    out.push_str(",\"msg\":");
    quote(out, &entry.msg);
    for (key, value) in &entry.fields {
        out.push(',');
        quote(out, key);
        out.push(':');
        write_value(out, value, ",");
    }
    out.push_str("}\n");
}

/// The same in columns, with the fields as JSON at the end.
pub(super) fn console(out: &mut String, name: Option<&str>, entry: &Entry, now: SystemTime) {
    out.push_str(&clock::timestamp(now));
    out.push('\t');
    out.push_str(entry.level.as_str());
    if let Some(name) = name {
        out.push('\t');
        out.push_str(name);
    }
    let _ = write!(out, "\t{}:{}\t{}", caller::short(entry.file), entry.line, entry.msg);
    for (at, (key, value)) in entry.fields.iter().enumerate() {
        out.push_str(if at == 0 { "\t{" } else { ", " });
        quote(out, key);
        out.push_str(": ");
        write_value(out, value, ", ");
    }
    out.push_str(if entry.fields.is_empty() { "\n" } else { "}\n" });
}

fn write_value(out: &mut String, value: &Value, comma: &str) {
    // Writing into a string cannot fail.
    let _ = match value {
        Value::Text(text) => {
            quote(out, text);
            Ok(())
        }
        Value::Int(number) => write!(out, "{number}"),
        Value::Uint(number) => write!(out, "{number}"),
        // JSON has no word for these; zap writes them as strings.
        Value::Float(number) if number.is_nan() => out.write_str("\"NaN\""),
        Value::Float(number) if number.is_infinite() => {
            out.write_str(if *number > 0.0 { "\"+Inf\"" } else { "\"-Inf\"" })
        }
        Value::Float(number) => write!(out, "{number}"),
        Value::Bool(yes) => write!(out, "{yes}"),
        Value::Duration(duration) => {
            quote(out, &format_duration(*duration));
            Ok(())
        }
        Value::List(list) => {
            out.push('[');
            for (at, text) in list.iter().enumerate() {
                if at > 0 {
                    out.push_str(comma);
                }
                quote(out, text);
            }
            out.write_char(']')
        }
    };
}

fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
