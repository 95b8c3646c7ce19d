extension RetirementSelection {
  /// Why the other members stop waiting for a client. Open: later versions may
  /// add reasons.
  public struct Reason: RawRepresentable, Hashable, Sendable, Codable {
    /// The reason's name.
    public let rawValue: String
    /// Creates a reason with the given name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The other members have not seen it for long. If a newer RecentSync of it
    /// arrives than the command names, the client is there and the command has
    /// no effect.
    public static let absent = Reason(rawValue: "absent")
    /// A user removed it.
    public static let removed = Reason(rawValue: "removed")
    /// It left the document.
    public static let left = Reason(rawValue: "left")
    /// A new incarnation of its store has taken its place.
    public static let replaced = Reason(rawValue: "replaced")
  }
}
