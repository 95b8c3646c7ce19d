import Foundation
import SyncModel
import Testing

/// The table of findings in the documentation.
struct VerifyPageTests {
  @Test func pageHasEveryKindWithItsGravityAndRemedy() throws {
    let page = try String(
      contentsOf: URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../Documentation/SharedDirectory.md"), encoding: .utf8)
    for kind in VerifyReport.Finding.Kind.allCases {
      let line = try #require(
        page.split(separator: "\n").first {
          $0.hasPrefix("| `\(kind.rawValue)` | \(kind.severity) |")
        },
        "\(kind)")
      #expect(line.contains(kind.remedy), "\(kind): \(kind.remedy)")
    }
  }
}
