import Foundation
import SyncModel
import Testing

extension ShippedFunction {
  func value(base: Value?, local: Value, remote: Value) -> Value? {
    value(base: base, local: local, remote: remote, checkCancellation: {})
  }
}

/// The functions by which policies decide without an application.
@Suite struct ShippedFunctionTests {
  private func decide(
    _ function: ShippedFunction, _ base: String, _ left: String, _ right: String
  ) -> String? {
    let value = function.value(base: .text(base), local: .text(left), remote: .text(right))
    guard case .text(let bytes) = value else { return nil }
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test(arguments: [
    // Different lines.
    ("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n"),
    ("a\nb\n", "a\n", "a\nb\nc\n", "a\nc\n"),
    // A line that both changed is merged by words.
    ("the quick fox", "the slow fox", "the quick dog", "the slow dog"),
    ("Milk 1, Eggs", "Milk 2, Eggs", "Milk 1, Eggs, Tea", "Milk 2, Eggs, Tea"),
    ("猫が好き", "犬が好き", "猫が嫌い", "犬が嫌い"),
    // Both changed the same words.
    ("Title 1\n", "Title 2\n", "Title 3\n", "Title 2\nTitle 3\n"),
    // A changed line wins over its deletion.
    ("a\nb\nc", "a\nb 2\nc", "a\nc", "a\nb 2\nc"), ("a\nb", "b", "a\nb 2", "b 2"),
    // Changes that touch each other.
    ("a", "A", "a\nb", "A\nb"), ("a\nb", "A\nb", "a\nB", "A\nB"),
    // Both added lines in one place; common ones are there once.
    ("a\n", "a\nx\ny\n", "a\ny\nz\n", "a\nx\ny\nz\n"), ("", "one", "two", "one\ntwo"),
    ("a\n", "a\nx\n", "a\nx\ny\n", "a\nx\ny\n"),
    // Both added a line, with a change beside it: it is there once.
    ("a\nb\n", "a\nB\nx\n", "A\nb\nx\n", "A\nB\nx\n"),
    ("milk\nbread", "milk\nrye bread\neggs", "oat milk\nbread\neggs", "oat milk\nrye bread\neggs"),
    ("a", "a\nc\nx", "a\nb\nx", "a\nb\nc\nx"),
    // Both moved a line, or added it, to different places; lines without a word may be there twice.
    ("a\nb\nc\nd", "b\nc\na\nd", "b\nc\nd\na", "b\nc\na\nd"),
    ("a\nb", "x\na\nb", "a\nb\nx", "x\na\nb"), ("a\nb", "--\na\nb", "a\nb\n--", "--\na\nb\n--"),
    // A changed word wins over its deletion.
    ("a b c d", "a X c d", "a d", "a X d"),
    // Nothing is left.
    ("a\nb", "a", "b", ""),
  ])
  func textsAreMerged(base: String, left: String, right: String, merged: String) {
    #expect(decide(.mergeText, base, left, right) == merged)
    #expect(decide(.mergeText, base, right, left) == merged)
  }

  @Test(arguments: [
    ("a\nb\nc\n", "a\nc\nd\n", "b\nc\ne\n", "c\nd\ne\n"),
    // A line counts as a whole, and one that both added is there once.
    ("x 1 a", "x 2 a", "x 1 b", "x 1 b\nx 2 a"),
    ("a\nb\n", "q\na\nb\n", "a\nb\nq\n", "q\na\nb\n"),
  ])
  func linesOfBothStay(base: String, left: String, right: String, merged: String) {
    #expect(decide(.unionOfLines, base, left, right) == merged)
    #expect(decide(.unionOfLines, base, right, left) == merged)
  }

  @Test(arguments: [
    (#"{"a":1,"b":2}"#, #"{"a":3,"b":2}"#, #"{ "a": 1, "b": 4 }"#, #"{"a":3,"b":4}"#),
    // Numbers keep their text; objects within objects are merged too.
    (
      #"{"o":{"x":1.0,"y":1}}"#, #"{"o":{"x":1.50,"y":1}}"#, #"{"o":{"x":1.0,"y":1e2,"z":[1, 2]}}"#,
      #"{"o":{"x":1.50,"y":1e2,"z":[1,2]}}"#
    ),
    // A removal, and a change that wins over one.
    (#"{"a":1,"b":2}"#, #"{"b":2}"#, #"{"a":1,"b":2,"c":3}"#, #"{"b":2,"c":3}"#),
    (#"{"a":1}"#, #"{}"#, #"{"a":2}"#, #"{"a":2}"#),
    // The order of the base, then that of names.
    (
      #"{"z":1,"a":1}"#, #"{"z":1,"a":1,"y":1}"#, #"{"a":1,"z":1,"b":1}"#,
      #"{"z":1,"a":1,"b":1,"y":1}"#
    ),
    // Both changed a value.
    (#"{"a":1}"#, #"{"a":9,"b":1}"#, #"{"a":10}"#, #"{"a":10,"b":1}"#),
    (#"{"a":[1]}"#, #"{"a":[1,2],"b":1}"#, #"{"a":[1,3]}"#, #"{"a":[1,3],"b":1}"#),
    // One name in two forms.
    (#"{"a":1}"#, #"{"\u0061":2}"#, #"{"a":1,"b":1}"#, #"{"a":2,"b":1}"#),
    // The base is no object.
    ("", #"{"a":1}"#, #"{"b":2}"#, #"{"a":1,"b":2}"#),
  ])
  func objectsAreMerged(base: String, left: String, right: String, merged: String) {
    #expect(decide(.mergeJSON, base, left, right) == merged)
    #expect(decide(.mergeJSON, base, right, left) == merged)
  }

  @Test(arguments: [
    #"{"a":2"#, #"{"a":2}}"#, #"{"a":02}"#, #"{"a":2,}"#, #"{"a":2,"a":3}"#, #"{"a":tru}"#, "[1]",
    "7",
    "", #"{"a":"\x"}"#, #"{"a":"\ud8"}"#, "{\"a\":\"\u{1}\"}", #"{"a":1.}"#, #"{"a":-}"#,
    String(repeating: #"{"a":"#, count: 5000), String(repeating: "[", count: 5000),
  ])
  func whatIsNoObjectIsNotMerged(text: String) {
    #expect(decide(.mergeJSON, #"{"a":1}"#, text, #"{"a":1,"b":1}"#) == nil)
    #expect(decide(.mergeJSON, #"{"a":1}"#, #"{"a":1,"b":1}"#, text) == nil)
  }

  /// Half a surrogate pair in a name is another name than the whole pair.
  @Test func namesHaveAllEscapes() {
    let base = #"{"\ud83d\ude00":1,"\ud83d":2,"\n\/\\\"\t":3,"\ud83d\u0041":4}"#
    let left = #"{"😀":5,"\ud83d":2,"\n/\\\"\t":3,"\ud83dA":8}"#
    let right = #"{"😀":1,"\ud83d":6,"\u000a\/\\\"\u0009":7,"\ud83d\u0041":4}"#
    #expect(
      decide(.mergeJSON, base, left, right)
        == #"{"\ud83d\ude00":5,"\ud83d":6,"\n\/\\\"\t":7,"\ud83d\u0041":8}"#)
  }

  /// From the least to the greatest.
  private static let ordered: [Value] = [
    .null, .real(-.infinity), .integer(.min), .integer(-1), .real(-0.5), .integer(0), .real(0.5),
    .integer(1),
    .real(1.5), .integer(1 << 53), .integer(1 << 53 + 1), .integer(.max), .real(0x1p63),
    .real(.infinity), .text(""), .text("B"), .text("a"), .text([0xff]), .blob([]), .blob([0]),
    .blob([1]),
  ]

  @Test func valuesHaveTheOrderOfSQLite() {
    for (place, less) in Self.ordered.enumerated() {
      for greater in Self.ordered[place...] {
        for (one, other) in [(less, greater), (greater, less)] {
          #expect(ShippedFunction.max.value(base: nil, local: one, remote: other) == greater)
          #expect(ShippedFunction.min.value(base: nil, local: one, remote: other) == less)
        }
      }
    }
    for function in [ShippedFunction.max, .min] {
      for (one, other) in [(Value.integer(1), Value.real(1)), (.real(1), .integer(1))] {
        #expect(function.value(base: nil, local: one, remote: other) == .integer(1))
      }
    }
  }

  @Test(arguments: ShippedFunction.allCases)
  func valuesOfOtherKindsAreLeftAlone(function: ShippedFunction) {
    let row = Value.identity(RowIdentity(bytes: [1]))
    #expect(function.value(base: nil, local: row, remote: .text("a")) == nil)
    guard function.isForText else { return }
    for value in [Value.null, .integer(1), .real(1), .blob([1])] {
      #expect(function.value(base: .text("b"), local: value, remote: .text("a")) == nil)
      #expect(function.value(base: .text("b"), local: value, remote: .text("b")) == value)
    }
  }

  // MARK: Random texts

  /// Checks what holds for all functions that merge. Returns whether there was a result.
  private func check(
    _ function: ShippedFunction, _ base: Value, _ left: Value, _ right: Value
  ) -> Bool {
    func merge(_ left: Value, _ right: Value) -> Value? {
      function.value(base: base, local: left, remote: right)
    }
    #expect(merge(left, left) == left)
    if function.isForText {
      #expect(merge(base, left) == left)
      #expect(merge(left, base) == left)
    }
    let merged = merge(left, right)
    #expect(merge(right, left) == merged, "\(function) of \(base), \(left), \(right)")
    guard let merged else { return false }
    for side in [left, right] {
      #expect(merge(merged, side) == merged, "\(function) of \(base), \(left), \(right)")
      #expect(merge(side, merged) == merged, "\(function) of \(base), \(left), \(right)")
    }
    return true
  }

  @Test(arguments: ShippedFunction.allCases, [2, 10, 1000])
  func resultDoesNotDependOnWhoDecides(function: ShippedFunction, count: Int) {
    var texts = RandomTexts(seed: UInt64(count), words: count)
    var merged = 0
    let attempts = 300
    for _ in 0..<attempts {
      let values: [String]
      if function == .mergeJSON {
        values = [texts.object(), texts.object(), texts.object()]
      } else {
        let base = texts.text()
        values = [base, texts.edited(base), texts.edited(base)]
      }
      if check(function, .text(values[0]), .text(values[1]), .text(values[2])) { merged += 1 }
    }
    // Blank lines and repeated words can make the result depend on the way.
    #expect(merged > attempts * 9 / 10, "\(function) merged \(merged)")
  }

  @Test(arguments: ShippedFunction.allCases)
  func anyBytesAreMergedOrLeftAlone(function: ShippedFunction) {
    var generator = SeededGenerator(seed: 7)
    let frequent = Array("\n \"{}[]:,\\u\u{0}é猫".utf8)
    func text() -> Value {
      .text(
        (0..<generator.below(40)).map { _ in
          generator.below(3) == 0
            ? UInt8(truncatingIfNeeded: generator.next())
            : frequent[generator.below(frequent.count)]
        })
    }
    for _ in 0..<300 { _ = check(function, text(), text(), text()) }
  }

  /// A long text is merged by lines and words.
  @Test(.timeLimit(.minutes(5)))
  func longTextsAreMerged() throws {
    func text(_ changed: Int?) -> String {
      (0..<5_000).map { line in
        "line \(line) has the word \(line % 7 == changed ? "new" : "old") in a row of words"
      }.joined(separator: "\n")
    }
    let merged = try #require(decide(.mergeText, text(nil), text(1), text(2)))
    #expect(merged.components(separatedBy: "new").count - 1 == 2 * 5_000 / 7 + 1)
  }

  /// Long texts, with nothing or with much in common in other places, come to an end soon.
  @Test(
    .timeLimit(.minutes(5)), arguments: [ShippedFunction.mergeText, .unionOfLines], [40, 4, 2])
  func differentTextsComeToAnEnd(function: ShippedFunction, lineLength: Int) {
    var generator = SeededGenerator(seed: 3)
    let texts = (0..<3).map { _ in
      Value.text(
        (0..<1 << 17).map { place -> UInt8 in
          place % lineLength == lineLength - 1
            ? UInt8(ascii: "\n") : UInt8(97 + generator.below(26))
        })
    }
    var steps = 0
    let merged = function.value(base: texts[0], local: texts[1], remote: texts[2]) { steps += 1 }
    guard lineLength == 40 else { return }
    // What both sides replaced is there twice, in the order of bytes.
    guard case .text(let left) = texts[1], case .text(let right) = texts[2] else { return }
    let first = left.lexicographicallyPrecedes(right) ? left : right
    let second = first == left ? right : left
    #expect(merged == .text(first + [UInt8(ascii: "\n")] + second))
    #expect(steps > 3)
  }

  private struct Cancelled: Error {}

  @Test(arguments: [
    (ShippedFunction.mergeText, "a", "b", "c"), (.unionOfLines, "a", "b", "c"),
    (.mergeJSON, "{}", #"{"a":1}"#, #"{"b":1}"#),
  ])
  func functionsAreCancelled(function: ShippedFunction, base: String, left: String, right: String) {
    #expect(throws: Cancelled.self) {
      try function.value(
        base: .text(base), local: .text(left), remote: .text(right),
        checkCancellation: { throw Cancelled() })
    }
  }

  @Test(arguments: [ShippedFunction.mergeText, .unionOfLines, .mergeJSON])
  func textsThatAreTooLongAreNotMerged(function: ShippedFunction) {
    let length = ShippedFunction.greatestLength / 2
    let long = Value.text(Array(repeating: UInt8(ascii: "a"), count: length))
    let longer = Value.text(Array(repeating: UInt8(ascii: "a"), count: length + 1))
    #expect(function.value(base: .text(""), local: long, remote: longer) == nil)
    #expect(function.value(base: longer, local: long, remote: longer) == long)
  }
}
