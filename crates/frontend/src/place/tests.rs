use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;
use crate::tests::tree;

fn abs(path: impl Into<std::path::PathBuf>) -> AbsPath {
    AbsPath::new(path).unwrap()
}

/// A folder whose `control.sock` has exactly so many bytes.
fn folder(bytes: usize) -> AbsPath {
    let rest = bytes - "/somewhere/".len() - "/control.sock".len();
    abs(format!("/somewhere/{}", "x".repeat(rest)))
}

#[test]
fn a_short_path_is_in_the_folder_of_the_tree() {
    let longest = folder(MAX_SOCKET_PATH - 1);
    let path = socket_path(&longest, None, tree());
    assert_eq!(path, longest.join("control.sock"));
    assert_eq!(path.as_os_str().len(), MAX_SOCKET_PATH - 1);
}

#[test]
fn a_long_path_is_in_the_runtime_folder() {
    let long = folder(MAX_SOCKET_PATH);
    let own = format!("agent-{}", own_uid());
    let path = socket_path(&long, Some(&abs("/run/user/7")), tree());
    assert_eq!(path.parent().unwrap(), abs("/run/user/7").join(&own));
    assert_eq!(path.extension().unwrap(), "sock");
    assert_eq!(path, socket_path(&long, Some(&abs("/run/user/7")), tree()), "the same every time");
    let other = folder(MAX_SOCKET_PATH + 1);
    assert_ne!(path, socket_path(&other, Some(&abs("/run/user/7")), tree()), "a copied home is another place");
    let other: TreeId = "01939d5e-0000-7000-8000-000000000009".parse().unwrap();
    assert_ne!(path, socket_path(&long, Some(&abs("/run/user/7")), other));
    // Without a runtime folder, or with one that is itself too deep.
    let temporary = socket_path(&long, None, tree());
    assert_eq!(temporary.parent().unwrap(), abs("/tmp").join(&own));
    assert_eq!(socket_path(&long, Some(&long), tree()), temporary);
    assert!(fits(&temporary));
}

#[test]
fn folders_that_are_not_safe() {
    let ok = |mode, shared| check(true, 7, mode, 7, shared).is_none();
    assert!(ok(0o700, true) && ok(0o700, false) && ok(0o755, false));
    for (mode, shared) in [(0o755, true), (0o701, true), (0o710, true), (0o775, false), (0o702, false)] {
        assert!(!ok(mode, shared), "{mode:o}");
    }
    assert!(check(true, 8, 0o700, 7, false).unwrap().contains("user 8"));
    assert!(check(false, 7, 0o700, 7, false).is_some());
}

#[test]
fn the_shared_folder_is_made_for_us_alone() {
    let base = tempfile::tempdir().unwrap();
    let socket = abs(base.path()).join(shared_folder()).join("x.sock");
    prepare(&socket).unwrap();
    let folder = socket.parent().unwrap();
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    prepare(&socket).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o750)).unwrap();
    let error = prepare(&socket).unwrap_err();
    assert!(matches!(error, BindError::Folder { .. }) && error.to_string().contains("chmod 700"), "{error}");
}

#[test]
fn a_link_in_place_of_the_folder_is_refused() {
    let base = tempfile::tempdir().unwrap();
    let elsewhere = base.path().join("elsewhere");
    DirBuilder::new().mode(0o700).create(&elsewhere).unwrap();
    let folder = abs(base.path()).join(shared_folder());
    symlink(&elsewhere, &folder).unwrap();
    assert!(matches!(prepare(&folder.join("x.sock")), Err(BindError::Folder { .. })));
    let file = abs(base.path()).join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(prepare(&file.join("x.sock")), Err(BindError::Folder { .. })));
}
