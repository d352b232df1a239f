//! Patches.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

impl Desk {
    async fn patch(&self, sections: &str) -> Result<String, String> {
        let text = format!("*** Begin Patch\n{sections}*** End Patch\n");
        match self.call_raw("apply_patch", text, true).await {
            Ok(output) => Ok(output.text),
            Err(ToolError::RespondToModel(text)) => Err(text),
            Err(ToolError::Fatal(text)) => panic!("{text}"),
        }
    }

    fn mode(&self, file: &str) -> u32 {
        fs::metadata(self.path().join(file)).unwrap().permissions().mode() & 0o7777
    }

    fn files(&self) -> Vec<String> {
        let names = fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

#[tokio::test]
async fn files_are_added_changed_and_deleted() {
    let desk = Desk::new();
    desk.write("change", "one\ntwo\nthree\n");
    desk.write("gone", "x\n");
    let done = desk.patch("*** Add File: deep/er/new\n+hello\n*** Update File: change\n@@\n one\n-two\n+zwei\n*** Delete File: gone\n").await;
    assert_eq!(done.unwrap(), "Success. Updated the following files:\nA deep/er/new\nM change\nD gone");
    assert_eq!(desk.read("deep/er/new"), "hello\n");
    assert_eq!(desk.read("change"), "one\nzwei\nthree\n");
    assert_eq!(desk.files(), ["change", "deep"], "no temporary file stays");
}

#[tokio::test]
async fn what_does_not_fit_changes_nothing() {
    let desk = Desk::new();
    desk.write("a", "one\n");
    desk.write("b", "two\n");
    let error = desk.patch("*** Update File: a\n@@\n-one\n+1\n*** Update File: b\n@@\n-drei\n+3\n").await.unwrap_err();
    assert!(error.contains("`b`") && error.contains("drei"), "{error}");
    assert_eq!((desk.read("a"), desk.read("b")), ("one\n".into(), "two\n".into()));
    let error = desk.patch("*** Nonsense\n").await.unwrap_err();
    assert!(error.starts_with("not a valid patch: line 2"), "{error}");
}

#[tokio::test]
async fn what_the_disk_refuses_tells_what_is_done() {
    let desk = Desk::new();
    desk.write("a", "one\n");
    desk.write("file", "");
    let error = desk.patch("*** Update File: a\n@@\n-one\n+1\n*** Add File: file/below\n+x\n").await.unwrap_err();
    assert!(error.contains("file/below") && error.contains("M a"), "{error}");
    assert_eq!(desk.read("a"), "1\n");
    assert_eq!(desk.files(), ["a", "file"]);
}

#[tokio::test]
async fn mode_bits_stay() {
    let desk = Desk::new();
    for (file, mode) in [("run", 0o755), ("secret", 0o600), ("read", 0o444)] {
        desk.write(file, "x\n");
        fs::set_permissions(desk.path().join(file), fs::Permissions::from_mode(mode)).unwrap();
    }
    desk.patch("*** Update File: run\n*** Move to: bin/run\n@@\n-x\n+y\n*** Update File: secret\n@@\n-x\n+y\n*** Update File: read\n@@\n-x\n+y\n*** Add File: new\n+x\n").await.unwrap();
    assert_eq!((desk.mode("bin/run"), desk.mode("secret"), desk.mode("read")), (0o755, 0o600, 0o444));
    assert_eq!(desk.read("bin/run"), "y\n");
    desk.write("like", "");
    assert_eq!(desk.mode("new"), desk.mode("like"), "what the umask leaves");
}

#[tokio::test]
async fn line_ends_and_links_stay() {
    let desk = Desk::new();
    desk.write("dos", "one\r\ntwo\r\nthree\r\n");
    symlink("dos", desk.path().join("link")).unwrap();
    desk.patch("*** Update File: link\n@@\n one\n-two\n+zwei\n+zweieinhalb\n three\n").await.unwrap();
    assert_eq!(desk.read("dos"), "one\r\nzwei\r\nzweieinhalb\r\nthree\r\n");
    assert!(desk.path().join("link").is_symlink());
    desk.patch("*** Delete File: link\n").await.unwrap();
    assert_eq!(desk.files(), ["dos"]);
}

#[tokio::test]
async fn what_is_no_file_is_refused() {
    let desk = Desk::new();
    fs::create_dir(desk.path().join("folder")).unwrap();
    desk.exec("mkfifo pipe").await;
    for path in ["folder", "pipe"] {
        let error = desk.patch(&format!("*** Update File: {path}\n@@\n-x\n+y\n")).await.unwrap_err();
        assert!(error.contains(path) && error.contains("it is "), "{error}");
    }
    let error = desk.patch("*** Delete File: folder\n").await.unwrap_err();
    assert!(error.contains("folder"), "{error}");
    assert_eq!(desk.files(), ["folder", "pipe"]);
}

#[tokio::test]
async fn every_form_of_a_call_is_understood() {
    let patch = |file: &str| format!("*** Begin Patch\n*** Add File: {file}\n+x\n*** End Patch");
    let desk = Desk::new();
    for (at, (arguments, custom)) in [
        (patch("0"), true),
        (patch("1"), false),
        (json!({ "input": patch("2") }).to_string(), false),
        (json!({ "patch": patch("3") }).to_string(), true),
    ]
    .into_iter()
    .enumerate()
    {
        let output = desk.call_raw("apply_patch", arguments, custom).await.unwrap();
        assert_eq!(output.text, format!("Success. Updated the following files:\nA {at}"));
    }
    let text = desk.refused("apply_patch", json!({ "patches": "" })).await;
    assert!(text.starts_with("apply_patch: unknown argument `patches`"), "{text}");
}

#[tokio::test]
async fn a_patch_in_a_command_line_is_a_patch() {
    let desk = Desk::new();
    fs::create_dir(desk.path().join("sub")).unwrap();
    let patch = |file: &str| format!("*** Begin Patch\n*** Add File: {file}\n+$x `y`\n*** End Patch");
    let text = desk.exec(&format!("apply_patch <<'EOF'\n{}\nEOF\n", patch("a"))).await;
    assert_eq!(text, "Success. Updated the following files:\nA a");
    desk.exec(&format!("cd sub && apply_patch '{}'", patch("b"))).await;
    desk.call("exec_command", json!({ "workdir": "sub", "cmd": format!("apply_patch <<EOF\n{}\nEOF", patch("c")) }))
        .await;
    for file in ["a", "sub/b", "sub/c"] {
        assert_eq!(desk.read(file), "$x `y`\n");
    }
    assert_eq!(desk.book.kinds(), [""; 0], "no process was started for it");
    let text = desk.exec("echo apply_patch 'x'").await;
    assert_eq!(body(&text), "apply_patch x\n");
}
