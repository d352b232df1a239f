use expect_test::expect;
use rustix::io::Errno;

use super::*;

fn said(errno: Errno) -> String {
    Error::io("read", "/x", io::Error::from(errno)).to_string()
}

/// What to do follows from what is wrong.
#[test]
fn each_trouble_has_its_remedy() {
    let errnos = [Errno::MFILE, Errno::NFILE, Errno::NOSPC, Errno::DQUOT, Errno::ROFS, Errno::ACCESS, Errno::IO];
    expect![[r#"
        cannot read `/x`: too many open files; raise the limit with `ulimit -n`, or lower max_resident or max_running
        cannot read `/x`: too many open files; raise the limit with `ulimit -n`, or lower max_resident or max_running
        the disk is full: nothing was added to `/x`; free some space and resume the tree
        the disk is full: nothing was added to `/x`; free some space and resume the tree
        cannot read `/x`: the file system is read-only; mount it for writing, or set AGENT_HOME to a folder on another
        cannot read `/x`: Permission denied (os error 13); check that the folder exists and belongs to you
        cannot read `/x`: Input/output error (os error 5); check the disk and the folder"#]]
    .assert_eq(&errnos.map(said).join("\n"));
    let unsynced = |errno| Error::Unsynced { file: "/x".into(), source: Arc::new(io::Error::from(errno)) };
    expect![
        "`/x` may not be on the disk, and nothing is acknowledged until it is: too many open files; raise the limit \
         with `ulimit -n`, or lower max_resident or max_running"
    ]
    .assert_eq(&unsynced(Errno::MFILE).to_string());
    assert!(unsynced(Errno::NFILE).is_shortage() && !unsynced(Errno::IO).is_shortage());
    assert!(matches!(Error::io("sync", "/x", unlinked()), Error::Removed { .. }));
}
