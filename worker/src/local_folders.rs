//! What a local store leaves that no object store knows: empty folders, and files that were being
//! written when the writer died.

use std::path::{Path as FilePath, PathBuf};

use lance_io::local::to_local_path;
use object_store::path::Path;

/// The folder or file of a path in a local store.
pub fn local_path(path: &Path) -> PathBuf {
    PathBuf::from(to_local_path(path))
}

/// Removes the folders below a folder that are empty, and the folder itself if it is then.
pub fn remove_empty(folder: &FilePath) {
    // Links are not followed: what they lead to is not the table's.
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_empty(&entry.path());
        }
    }
    // Fails where anything is left.
    let _ = std::fs::remove_dir(folder);
}

/// Removes what a writer that died left of a file.
pub fn remove_staged(file: &FilePath) -> std::io::Result<()> {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name().and_then(|n| n.to_str()))
    else {
        return Ok(());
    };
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let found = entry.file_name();
        if found.to_str().and_then(staged) == Some(name) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Removes what writers that died left of any file below a folder. Returns how many files that were; what
/// can't be removed stays.
pub fn remove_staged_below(folder: &FilePath) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    let mut removed = 0;
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            removed += remove_staged_below(&entry.path());
        } else if entry.file_name().to_str().and_then(staged).is_some()
            && std::fs::remove_file(entry.path()).is_ok()
        {
            removed += 1;
        }
    }
    removed
}

/// The name of the file of which this is a beginning: it is written under its name with `#` and a number
/// behind it, and renamed when it is whole.
fn staged(name: &str) -> Option<&str> {
    let (name, number) = name.rsplit_once('#')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_files_own_beginnings_go() {
        let folder = tempfile::tempdir().unwrap();
        let stay = [
            "a.lance",
            "a.lance#",
            "a.lance#x",
            "b.lance#1",
            "aa.lance#1",
        ];
        let go = ["a.lance#1", "a.lance#23"];
        for name in stay.iter().chain(&go) {
            std::fs::write(folder.path().join(name), b"").unwrap();
        }
        remove_staged(&folder.path().join("a.lance")).unwrap();
        remove_staged(&folder.path().join("nowhere/a.lance")).unwrap();
        for (names, there) in [(&stay[..], true), (&go[..], false)] {
            for name in names {
                assert_eq!(folder.path().join(name).exists(), there, "{name}");
            }
        }
    }

    #[test]
    fn the_beginnings_of_all_files_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        std::fs::create_dir_all(path.join("t/a#1")).unwrap();
        for name in ["t/x#1", "t/a#1/y#22", "t/a#1/y", "t/a#1/z#"] {
            std::fs::write(path.join(name), b"").unwrap();
        }
        assert_eq!(remove_staged_below(&path.join("t")), 2);
        assert_eq!(remove_staged_below(&path.join("nowhere")), 0);
        assert!(path.join("t/a#1/y").exists() && path.join("t/a#1/z#").exists());
    }

    #[test]
    fn only_empty_folders_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        std::fs::create_dir_all(path.join("t/a/b")).unwrap();
        std::fs::create_dir_all(path.join("t/c")).unwrap();
        std::fs::write(path.join("t/c/file"), b"").unwrap();
        remove_empty(&path.join("t"));
        assert!(!path.join("t/a").exists() && path.join("t/c/file").exists());
        std::fs::remove_file(path.join("t/c/file")).unwrap();
        remove_empty(&path.join("t"));
        assert!(!path.join("t").exists() && path.exists());
    }
}
