/// Padmé: lengths that tell little about what they hide, at a cost of at most 12 %.
///
/// Nikitin, Barman, Lueks, Underwood, Hubaux and Ford, “Reducing Metadata Leakage from Encrypted
/// Files and Communication with PURBs”, 2019, section 4. A length keeps as many significant bits as
/// its logarithm has.
enum Padme {
  /// The least length.
  static let least = 1024

  /// Returns the length to which `count` bytes are padded.
  static func padded(_ count: Int) -> Int {
    let count = max(count, least)
    let exponent = Int.bitWidth - 1 - count.leadingZeroBitCount
    let kept = Int.bitWidth - exponent.leadingZeroBitCount
    let mask = 1 << (exponent - kept) - 1
    return (count + mask) & ~mask
  }
}
