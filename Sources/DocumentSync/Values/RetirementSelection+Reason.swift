extension RetirementSelection {
  /// Why the members need not wait for a client any more. Open: later versions
  /// may add their own.
  public struct Reason: RawRepresentable, Hashable, Sendable, Codable {
    /// The reason's name.
    public let rawValue: String
    /// A reason of the given name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// It was not seen for long. A marker of it that is newer than the one that
    /// the command names shows that it is there, and the command has no effect.
    public static let absent = Reason(rawValue: "absent")
    /// A user removed it.
    public static let removed = Reason(rawValue: "removed")
    /// It left by itself.
    public static let left = Reason(rawValue: "left")
    /// A new incarnation of its store took its place.
    public static let replaced = Reason(rawValue: "replaced")
  }
}
