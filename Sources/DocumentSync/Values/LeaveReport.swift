import SyncModel
import SyncStore

/// What leaving has done.
public struct LeaveReport: Hashable, Sendable {
  /// What the store was bound to.
  public var binding: StoreBinding
  /// What the last synchronization did; `nil` if there was none.
  public var synchronization: SyncReport?
  /// What only the bookkeeping contained, and is lost.
  public var loss: RemovalLoss
  /// Whether the others were told.
  public var hasToldOthers: Bool

  /// Creates a report from its parts.
  package init(
    binding: StoreBinding, synchronization: SyncReport?, loss: RemovalLoss, hasToldOthers: Bool
  ) {
    self.binding = binding
    self.synchronization = synchronization
    self.loss = loss
    self.hasToldOthers = hasToldOthers
  }
}
