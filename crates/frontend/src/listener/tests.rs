use super::*;
use crate::tests::{place, tree, within};

fn names(path: &AbsPath) -> Vec<String> {
    let read = fs::read_dir(path.parent().unwrap()).unwrap();
    read.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn the_socket_is_for_the_user_alone_and_goes_with_its_owner() {
    let (_folder, path) = place();
    let listener = Listener::bind(&path, tree()).await.unwrap();
    assert_eq!(names(&path), ["control.sock"]);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    let (_client, accepted) = tokio::join!(UnixStream::connect(&path), listener.socket.accept());
    accepted.unwrap();
    drop(listener);
    assert!(names(&path).is_empty());
}

#[tokio::test]
async fn the_socket_of_a_dead_owner_is_replaced() {
    let (_folder, path) = place();
    // One that listened, and one that died before its socket had its name.
    drop(UnixListener::bind(&path).unwrap());
    drop(UnixListener::bind(path.with_extension("new")).unwrap());
    assert_eq!(names(&path).len(), 2);
    let listener = Listener::bind(&path, tree()).await.unwrap();
    assert_eq!(names(&path), ["control.sock"]);
    let (client, accepted) = tokio::join!(UnixStream::connect(&path), listener.socket.accept());
    client.unwrap();
    accepted.unwrap();
}

#[tokio::test]
async fn a_socket_that_answers_is_not_taken_away() {
    let (_folder, path) = place();
    let first = Listener::bind(&path, tree()).await.unwrap();
    let error = within(Listener::bind(&path, tree())).await.unwrap_err();
    assert!(matches!(error, BindError::InUse { .. }), "{error}");
    // The attempt was a connection like any other; the next one comes through.
    within(first.socket.accept()).await.unwrap();
    let (client, accepted) = tokio::join!(UnixStream::connect(&path), first.socket.accept());
    client.unwrap();
    accepted.unwrap();
}

#[tokio::test]
async fn what_is_no_socket_is_left_alone() {
    let (_folder, path) = place();
    fs::write(&path, "precious").unwrap();
    let error = Listener::bind(&path, tree()).await.unwrap_err();
    assert!(matches!(error, BindError::NotASocket { .. }) && error.to_string().contains("move it away"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(matches!(Listener::bind(&path, tree()).await, Err(BindError::NotASocket { .. })));
    fs::remove_dir(&path).unwrap();
    // A link is not followed, wherever it leads.
    let target = path.with_extension("target");
    drop(UnixListener::bind(&target).unwrap());
    std::os::unix::fs::symlink(&target, &path).unwrap();
    assert!(matches!(Listener::bind(&path, tree()).await, Err(BindError::NotASocket { .. })));
    assert!(target.exists());
}

#[tokio::test]
async fn a_socket_of_somebody_else_is_not_removed() {
    let (_folder, path) = place();
    let old = Listener::bind(&path, tree()).await.unwrap();
    fs::remove_file(&path).unwrap();
    let new = Listener::bind(&path, tree()).await.unwrap();
    drop(old);
    assert!(path.exists());
    drop(new);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_folder_that_others_may_write_to_is_refused() {
    let (folder, path) = place();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(Listener::bind(&path, tree()).await, Err(BindError::Folder { .. })));
    assert!(names(&path).is_empty());
}

#[tokio::test]
async fn a_path_in_a_long_folder_works_by_hash() {
    let (folder, _) = place();
    let deep = AbsPath::new(folder.path().join("x".repeat(120))).unwrap();
    let runtime = AbsPath::new(folder.path()).unwrap();
    let path = crate::socket_path(&deep, Some(&runtime), tree());
    assert!(path.starts_with(folder.path()));
    let listener = Listener::bind(&path, tree()).await.unwrap();
    let (client, accepted) = tokio::join!(UnixStream::connect(&path), listener.socket.accept());
    client.unwrap();
    accepted.unwrap();
}
