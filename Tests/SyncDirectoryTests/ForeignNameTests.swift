import SyncDirectory
import SyncModel
import Testing

@Suite struct ForeignNameTests {
  private static let change = "1.\(Sample.hash).syncchg"

  @Test(arguments: [
    ("1.abcdefghij (1).syncchg", ForeignName.Reason.conflictedCopy),
    ("1.abcdefghij(2).syncchg", .conflictedCopy),
    ("1.abcdefghij (Anna's conflicted copy 2026-01-01).syncchg", .conflictedCopy),
    ("1.abcdefghij.sync-conflict-20260101-120000-ABCDEFG.syncchg", .conflictedCopy),
    (".fuse_hidden0000002a00000001", .temporary), (".nfs000000000001", .temporary),
    (".syncthing.1.abcdefghij.syncchg.tmp", .temporary), ("x.partial", .temporary),
    (".dat.nosync1234.abc", .temporary), ("x.tmp", .temporary),
    (".1.abcdefghij.syncchg.icloud", .placeholder), ("1.abcdefghij.syncchg~", .backup),
    ("~$notes", .backup), ("x.bak", .backup), (".DS_Store", .system), ("desktop.ini", .system),
    (".stfolder", .hidden), ("notes.txt", .unknown), ("", .unknown), ("(", .unknown),
    (")(", .unknown), ("()", .unknown), ("\u{fffd}", .unknown),
  ])
  func litterIsToldByItsName(name: String, reason: ForeignName.Reason) {
    #expect(ForeignName(name: name).reason == reason)
  }

  @Test func aListingIsSortedIntoOursAndForeign() {
    let listing = ParsedListing<ChangeFileName>([
      DirectoryEntry(name: Self.change, kind: .file),
      DirectoryEntry(name: "2-3.\(Sample.hash).segment", kind: .unknown),
      DirectoryEntry(name: "4.\(Sample.hash).syncchg", kind: .folder),
      DirectoryEntry(name: "5.\(Sample.hash).syncchg", kind: .other),
      DirectoryEntry(name: "6.\(Sample.hash) (1).syncchg", kind: .file),
    ])
    #expect(listing.names.map(\.numbers) == [1...1, 2...3])
    #expect(listing.foreign.map(\.reason) == [.wrongKind, .wrongKind, .conflictedCopy])
  }

  @Test func aFileInPlaceOfAFolderIsForeign() {
    let listing = ParsedListing<ClientIdentifier>([
      DirectoryEntry(name: Sample.alice.description, kind: .folder),
      DirectoryEntry(name: Sample.bob.description, kind: .file),
    ])
    #expect(listing.names == [Sample.alice])
    #expect(listing.foreign.map(\.reason) == [.wrongKind])
  }
}
