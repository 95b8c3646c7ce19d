import Foundation
import Testing

@testable import DocumentSync

/// The page on errors says of each code when the engine tries again.
@Suite struct RetryPageTests {
  private static func text(_ path: String) throws -> String {
    let root = URL(filePath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    return try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  @Test func thePageHasEachCodeWhereItBelongs() throws {
    let source = try Self.text("Sources/DocumentSync/Values/SyncError+Code.swift")
    let codes = source.matches(of: #/Self\(rawValue: "(\w+)"\)/#).map { String($0.1) }
    #expect(codes.count > 50)
    let page = try Self.text(
      "Sources/DocumentSync/DocumentSync.docc/Articles/ErrorsAndRemedies.md")
    var listed: [String: [String]] = [:]
    for row in page.matches(of: #/\| ``SyncError/Retry/(\w+)`` \| ([^|]*) \|/#) {
      listed[String(row.1)] = row.2.matches(of: #/`(\w+)`/#).map { String($0.1) }
    }
    #expect(Set(listed.keys) == Set(SyncError.Retry.allCases.map { "\($0)" }))
    #expect(listed.values.flatMap(\.self).sorted() == codes.sorted())
    for retry in SyncError.Retry.allCases {
      for code in listed["\(retry)"] ?? [] {
        #expect(SyncError.Code(rawValue: code).retry == retry, "\(code)")
      }
    }
  }
}
