//! The terminal: taken once, given back always (end, panic in any thread, signals, the editor, ctrl-z, a vanished one).
