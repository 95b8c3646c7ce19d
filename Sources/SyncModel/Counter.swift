/// A cell whose edits add up: the number that was set, and for each client the sum of its later
/// additions.
///
/// A client's later sum replaces its earlier one, so that nothing counts twice.
package struct Counter: Hashable, Sendable {
  /// The sum of a client's additions up to a time.
  package struct Sum: Hashable, Sendable {
    /// The sum; a real or an integer.
    package var value: Value
    /// The time of the last addition.
    package var time: HybridTime

    /// Creates a sum.
    package init(_ value: Value, at time: HybridTime) {
      self.value = value
      self.time = time
    }

    /// Returns whether another sum of the same client replaces this one. All devices order two sums
    /// of one client in the same way.
    package func precedes(_ other: Sum) -> Bool {
      if time != other.time { return time < other.time }
      return Counter.precedes(value, other.value)
    }
  }

  /// The number that was set; a real or an integer.
  package var base: Value
  /// The sum of each client's additions.
  package var sums: [ClientIdentifier: Sum] = [:]

  /// Creates a counter without additions; `nil` if `base` is not a number.
  package init?(base: Value) {
    guard Self.isNumber(base) else { return nil }
    self.base = base
  }

  /// The number that tables show. An integer sum that does not fit stops at the limit.
  package var total: Value {
    // All devices add in the same order: sums of reals depend on it.
    let sums = self.sums.sorted { $0.key < $1.key }.map(\.value.value)
    return Self.sum([base] + sums)
  }

  /// Adds the difference between two numbers to a client's sum.
  ///
  /// Returns false and adds nothing if one of them is not a number, if the difference or the sum
  /// does not fit in 64 bits, if reals are so far apart that the total would differ from `new`, or
  /// if the total would be a real and `new` is an integer that no real equals. The caller then sets
  /// the counter instead.
  ///
  /// - Parameter time: The time of the addition. The sum's time is always later than the time of
  ///   the client's previous sum.
  package mutating func add(
    from old: Value, to new: Value, by client: ClientIdentifier, at time: HybridTime
  ) -> Bool {
    guard let difference = Self.difference(from: old, to: new) else { return false }
    if old == new { return true }
    let before = sums[client]
    let sum = Self.sum([before?.value ?? .integer(0), difference])
    if sum == .integer(.min) || sum == .integer(.max) || !Self.isNumber(sum) { return false }
    var counter = self
    counter.sums[client] = Sum(sum, at: max(time, before?.time.next ?? .zero))
    if old == total, !Self.isAbout(new, counter.total) { return false }
    self = counter
    return true
  }

  /// Returns whether a total equals a number, apart from the rounding of added reals. An integer
  /// beyond 2⁵³ that no real equals cannot be a rounded sum of reals.
  private static func isAbout(_ number: Value, _ total: Value) -> Bool {
    guard case .real(let difference)? = difference(from: number, to: total) else {
      return number == total
    }
    if case .integer(let integer) = number, Int64(exactly: real(number)) != integer {
      return false
    }
    return abs(difference) <= max(abs(real(number)), abs(real(total))) / 1e9
  }

  /// Takes over a client's sum, unless a later sum of this client is known.
  package mutating func merge(_ sum: Sum, of client: ClientIdentifier) {
    if let known = sums[client], !known.precedes(sum) { return }
    sums[client] = sum
  }

  /// Returns the difference between two numbers; `nil` if one of them is not a number, or if the
  /// difference does not fit in 64 bits.
  package static func difference(from old: Value, to new: Value) -> Value? {
    guard isNumber(old), isNumber(new) else { return nil }
    if case .integer(let old) = old, case .integer(let new) = new {
      let (result, overflows) = new.subtractingReportingOverflow(old)
      return overflows ? nil : .integer(result)
    }
    let result = real(new) - real(old)
    return result.isFinite ? .real(result) : nil
  }

  static func isNumber(_ value: Value) -> Bool {
    switch value {
    case .integer: true
    case .real(let real): real.isFinite
    case .null, .text, .blob, .identity: false
    }
  }

  /// Orders numbers totally: an integer comes before an equal real.
  private static func precedes(_ left: Value, _ right: Value) -> Bool {
    if case .integer(let left) = left, case .integer(let right) = right { return left < right }
    let (leftReal, rightReal) = (real(left), real(right))
    return leftReal == rightReal ? left.kind.rawValue < right.kind.rawValue : leftReal < rightReal
  }

  /// Merges another state of the same counter: takes the greater number
  /// that was set, and the later sum of each client.
  package mutating func merge(_ other: Counter) {
    if Self.precedes(base, other.base) { base = other.base }
    for (client, sum) in other.sums { merge(sum, of: client) }
  }

  private static func real(_ value: Value) -> Double {
    switch value {
    case .integer(let integer): Double(integer)
    case .real(let real): real
    case .null, .text, .blob, .identity: 0
    }
  }

  private static func sum(_ values: [Value]) -> Value {
    var high: Int64 = 0
    var low: UInt64 = 0
    for value in values {
      guard case .integer(let integer) = value else {
        return .real(values.reduce(0) { $0 + real($1) })
      }
      let (sum, carries) = low.addingReportingOverflow(UInt64(bitPattern: integer))
      low = sum
      high += (integer < 0 ? -1 : 0) + (carries ? 1 : 0)
    }
    if high == (Int64(bitPattern: low) < 0 ? -1 : 0) { return .integer(Int64(bitPattern: low)) }
    return .integer(high < 0 ? .min : .max)
  }
}

/// The form of a counter's value in change sets and in bookkeeping.
///
/// Numbers, text and NULL stand for themselves: they set the counter. A blob's
/// first byte tells a plain blob from the other cases.
package enum CounterValue: Hashable, Sendable {
  /// The counter is set to a value, a number or not.
  case plain(Value)
  /// A client's sum of its additions since the value with the stamp `since` was set, and its
  /// previously published sum. The sum's time is the time of the cell.
  case added(sum: Value, before: Counter.Sum?, since: Stamp)
  /// A counter with additions.
  case counter(Counter)

  private enum Tag: UInt8 { case blob = 0, added = 1, counter = 2 }

  /// The value that a table shows; NULL for ``added(sum:before:since:)``.
  package var shown: Value {
    switch self {
    case .plain(let value): value
    case .added: .null
    case .counter(let counter): counter.total
    }
  }

  /// The form in change sets and in bookkeeping.
  package var encoded: Value {
    switch self {
    case .plain(.blob(let bytes)): return .blob([Tag.blob.rawValue] + bytes)
    case .plain(let value): return value
    case .added(let sum, let before, let stamp):
      var bytes = [Tag.added.rawValue]
      bytes.append(bigEndian: stamp.time.rawValue)
      bytes += stamp.client.bits.bytes
      bytes.append(number: sum)
      if let before { bytes.append(before) }
      return .blob(bytes)
    case .counter(let counter):
      var bytes = [Tag.counter.rawValue]
      bytes.append(number: counter.base)
      for (client, sum) in counter.sums.sorted(by: { $0.key < $1.key }) {
        bytes += client.bits.bytes
        bytes.append(sum)
      }
      return .blob(bytes)
    }
  }

  /// Decodes ``encoded``; `nil` if it is damaged.
  package init?(_ value: Value) {
    guard case .blob(let bytes) = value else {
      self = .plain(value)
      return
    }
    guard let tag = bytes.first.flatMap(Tag.init) else { return nil }
    let content = bytes.dropFirst()
    switch tag {
    case .blob: self = .plain(.blob(Array(content)))
    case .added:
      guard content.count == 33 || content.count == 50,
        let time = content.prefix(8).bigEndianWord,
        let client = Bits128(bytes: content.dropFirst(8).prefix(16)),
        let sum = Value(number: content.dropFirst(24).prefix(9))
      else { return nil }
      var before: Counter.Sum?
      if content.count == 50 {
        guard let known = Counter.Sum(content.dropFirst(33)) else { return nil }
        before = known
      }
      self = .added(
        sum: sum, before: before,
        since: Stamp(
          time: HybridTime(rawValue: time), client: ClientIdentifier(bits: client)))
    case .counter:
      guard content.count % 33 == 9, let base = Value(number: content.prefix(9)),
        var counter = Counter(base: base)
      else { return nil }
      var rest = content.dropFirst(9)
      while !rest.isEmpty {
        guard let client = Bits128(bytes: rest.prefix(16)),
          let sum = Counter.Sum(rest.dropFirst(16).prefix(17))
        else { return nil }
        counter.sums[ClientIdentifier(bits: client)] = sum
        rest = rest.dropFirst(33)
      }
      self = .counter(counter)
    }
  }
}

extension Array where Element == UInt8 {
  fileprivate mutating func append(bigEndian word: UInt64) {
    Swift.withUnsafeBytes(of: word.bigEndian) { append(contentsOf: $0) }
  }

  /// Appends a sum: the number, then the time as eight bytes.
  fileprivate mutating func append(_ sum: Counter.Sum) {
    append(number: sum.value)
    append(bigEndian: sum.time.rawValue)
  }

  /// Appends a number: a byte for the kind, then eight bytes.
  fileprivate mutating func append(number: Value) {
    append(number.kind.rawValue)
    switch number {
    case .integer(let integer): append(bigEndian: UInt64(bitPattern: integer))
    // Equal numbers have one form: −0.0 is written as 0.0.
    case .real(let real): append(bigEndian: real == 0 ? 0 : real.bitPattern)
    case .null, .text, .blob, .identity: append(bigEndian: 0)
    }
  }
}

extension ArraySlice where Element == UInt8 {
  fileprivate var bigEndianWord: UInt64? {
    count == 8 ? reduce(0) { $0 << 8 | UInt64($1) } : nil
  }
}

extension Counter.Sum {
  fileprivate init?(_ bytes: ArraySlice<UInt8>) {
    guard bytes.count == 17, let value = Value(number: bytes.prefix(9)),
      let time = bytes.dropFirst(9).bigEndianWord
    else { return nil }
    self.init(value, at: HybridTime(rawValue: time))
  }
}

extension Value {
  fileprivate init?(number bytes: ArraySlice<UInt8>) {
    guard let kind = bytes.first.flatMap(ValueKind.init), let word = bytes.dropFirst().bigEndianWord
    else { return nil }
    switch kind {
    case .integer: self = .integer(Int64(bitPattern: word))
    case .real: self = .real(Double(bitPattern: word))
    case .null, .text, .blob, .identity: return nil
    }
    guard Counter.isNumber(self) else { return nil }
  }
}
