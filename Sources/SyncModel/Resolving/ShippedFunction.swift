/// The functions that decide conflicts by the policy `resolve:NAME` without an application.
///
/// Each gives the same value whichever value is local and which is remote. If its result meets one of the two values
/// again, it gives the result: devices that decide one conflict do not answer each other for ever.
package enum ShippedFunction: String, CaseIterable, Sendable {
  /// Merges texts by lines, then by words.
  case mergeText
  /// Merges texts with objects in JSON by member.
  case mergeJSON
  /// The greater value.
  case max
  /// The lesser value.
  case min
  /// The lines of both texts, without those of the base that one side removed.
  case unionOfLines

  /// The names, for a sentence.
  package static let names = allCases.map(\.rawValue).joined(separator: ", ")

  /// Whether the function is for text alone.
  package var isForText: Bool { self != .max && self != .min }

  /// Texts that are longer together are not merged.
  package static let greatestLength = 32 << 20

  /// Returns the value for a conflict; `nil` if the function cannot make one of the two values.
  ///
  /// - Parameter checkCancellation: Called repeatedly; throws to cancel.
  package func value(
    base: Value?, local: Value, remote: Value, checkCancellation: () throws -> Void
  ) rethrows -> Value? {
    if local == remote { return local }
    switch self {
    case .max: return Value.extreme(local, remote, isGreatest: true)
    case .min: return Value.extreme(local, remote, isGreatest: false)
    case .mergeText, .mergeJSON, .unionOfLines:
      if local == base { return remote }
      if remote == base { return local }
      guard case .text(let left) = local, case .text(let right) = remote else { return nil }
      var before: [UInt8] = []
      if case .text(let bytes) = base { before = bytes }
      guard before.count + left.count + right.count <= Self.greatestLength else { return nil }
      return try merged(base: before, left, right, checkCancellation).map(Value.text)
    }
  }

  private func merged(
    base: [UInt8], _ left: [UInt8], _ right: [UInt8], _ checkCancellation: () throws -> Void
  ) rethrows -> [UInt8]? {
    switch self {
    case .mergeJSON:
      try JSONMerge.merged(
        base: base, left: left, right: right, checkCancellation: checkCancellation)
    default:
      try TextMerge.merged(
        base: base, left: left, right: right, by: self == .unionOfLines ? .lines : .words,
        checkCancellation: checkCancellation)
    }
  }
}
