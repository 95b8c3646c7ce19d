import SyncDirectory
import Testing

@Suite struct RelativePathTests {
  @Test(arguments: ["/", "/a", "a/", "a//b", ".", "..", "a/../b", "../a", "a/./b", "a\0b"])
  func pathsThatCouldLeadElsewhereAreRefused(text: String) {
    #expect(RelativePath(text) == nil)
  }

  @Test func theEmptyTextIsTheRoot() {
    #expect(RelativePath("") == .root)
    #expect(RelativePath.root.parent == nil)
    #expect(!RelativePath.root.isPublishable)
  }

  @Test func aPathIsReadAsItIsWritten() throws {
    let path = try path("a/b.c/d e")
    #expect(path.components == ["a", "b.c", "d e"])
    #expect(RelativePath(path.description) == path)
    #expect(path.parent?.appending("d e") == path)
    #expect(path.appending("x/y") == nil)
    #expect(path.appending("..") == nil)
  }

  @Test func namesOf64CharactersArePublishableAndNoLonger() throws {
    #expect(try path(String(repeating: "a", count: 64)).isPublishable)
    #expect(try !path(String(repeating: "a", count: 65)).isPublishable)
  }

  @Test func pathsOf160CharactersArePublishableAndNoLonger() throws {
    let name = String(repeating: "a", count: 53)
    #expect(try path("\(name)/\(name)/\(name.dropLast())").isPublishable)
    #expect(try path("\(name)/\(name)/\(name.dropLast())").description.utf8.count == 160)
    #expect(try !path("\(name)/\(name)/\(name)").isPublishable)
  }
}
