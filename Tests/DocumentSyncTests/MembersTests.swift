import SyncModel
import Testing

@testable import DocumentSync

/// Who the members are, by commands and markers alone.
struct MembersTests {
  private static let (a, b, c, x, y) = (id(1), id(2), id(3), id(10), id(11))
  private var a: ClientIdentifier { Self.a }
  private var b: ClientIdentifier { Self.b }
  private var c: ClientIdentifier { Self.c }
  private var x: ClientIdentifier { Self.x }
  private var y: ClientIdentifier { Self.y }

  private static func id(_ number: UInt64) -> ClientIdentifier {
    ClientIdentifier(bits: Bits128(high: 0, low: number))
  }

  private func vector(_ numbers: [ClientIdentifier: UInt64]) -> VersionVector {
    VersionVector(
      numbers.mapValues { VersionVector.Entry(number: $0, hash: ContentHash(of: [])) })
  }

  private func standing(
    commands: [ClientIdentifier: UInt64] = [:], applied: [ClientIdentifier: UInt64] = [:]
  ) -> Members.Standing {
    Members.Standing(commands: vector(commands), applied: vector(applied))
  }

  private func retirement(
    of client: ClientIdentifier, by author: ClientIdentifier, number: UInt64 = 1, at time: Int64,
    reason: RetirementSelection.Reason = .removed, lastRevision: UInt64 = 5
  ) -> CommandState.Retirement {
    CommandState.Retirement(
      client: client, reason: reason, lastRevision: lastRevision, author: author, number: number,
      stamp: HybridTime(milliseconds: time))
  }

  /// The members as client A sees them.
  private func members(
    own: Members.Standing? = nil, revisions: [ClientIdentifier: UInt64],
    standings: [ClientIdentifier: Members.Standing], _ retirements: [CommandState.Retirement],
    needs: [Members.Need] = []
  ) -> Members {
    Members(
      own: a, ownStanding: own ?? standing(commands: [a: 1, b: 1, x: 1, y: 1]),
      revisions: revisions, standings: standings, retirements: retirements, needs: needs)
  }

  @Test func withoutRetirementsEveryClientWithAMarkerIsAMember() {
    let found = members(revisions: [b: 1, x: 1], standings: [:], [])
    #expect(found.all == [a, b, x])
    #expect(found.remaining == found.all)
    #expect(found.isSettled)
  }

  @Test func retiredClientIsWaitedForUntilAllHaveStopped() {
    let waiting = members(
      revisions: [b: 1, x: 1], standings: [b: standing()], [retirement(of: x, by: a, at: 1)])
    #expect(waiting.cuts == [x: .stopped(waitingFor: [b])])
    #expect(waiting.remaining == [a, b])
    #expect(waiting.all == [a, b, x])
    let unread = members(
      revisions: [b: 1, x: 1], standings: [:], [retirement(of: x, by: a, at: 1)])
    #expect(unread.cuts == [x: .stopped(waitingFor: [b])])
  }

  @Test func cutIsTheHighestNumberThatAMemberHasApplied() {
    let found = members(
      own: standing(commands: [a: 1], applied: [x: 7]), revisions: [b: 1, c: 1, x: 1],
      standings: [
        b: standing(commands: [a: 1], applied: [x: 9]),
        c: standing(commands: [a: 1], applied: [x: 3]),
        x: standing(applied: [x: 30]),
      ], [retirement(of: x, by: a, at: 1)])
    #expect(found.cuts == [x: .settled(9)])
    #expect(found.all == [a, b, c])
  }

  @Test func lateMarkerMakesTheCutGrow() {
    let retirement = retirement(of: x, by: a, at: 1)
    var standings = [b: standing(commands: [a: 1], applied: [x: 9])]
    let before = members(
      own: standing(commands: [a: 1]), revisions: [b: 1, x: 1], standings: standings, [retirement])
    #expect(before.cuts == [x: .settled(9)])
    // Who joined from a whole store that contains more.
    standings[c] = standing(commands: [a: 1], applied: [x: 20])
    let after = members(
      own: standing(commands: [a: 1]), revisions: [b: 1, c: 1, x: 1], standings: standings,
      [retirement])
    #expect(after.cuts == [x: .settled(20)])
  }

  @Test func changeSetThatWaitsMakesTheCutGrowByWhatItNeeds() {
    let found = members(
      own: standing(commands: [a: 2]), revisions: [b: 1, x: 1, y: 1],
      standings: [b: standing(commands: [a: 2], applied: [x: 2, y: 4])],
      [retirement(of: x, by: a, at: 1), retirement(of: y, by: a, number: 2, at: 2)],
      needs: [
        Members.Need(author: b, number: 6, missing: [y: 5]),
        Members.Need(author: y, number: 5, missing: [x: 3]),
        Members.Need(author: y, number: 6, missing: [x: 8]),
        Members.Need(author: x, number: 9, missing: [y: 12]),
      ])
    // What is beyond a cut itself makes nothing grow.
    #expect(found.cuts == [x: .settled(3), y: .settled(5)])
  }

  @Test func newerMarkerCancelsTheRetirementOfAnAbsentClient() {
    let absent = retirement(of: x, by: a, at: 1, reason: .absent, lastRevision: 5)
    let standings = [b: standing(commands: [a: 1])]
    let own = standing(commands: [a: 1])
    let before = members(own: own, revisions: [b: 1, x: 5], standings: standings, [absent])
    #expect(before.cuts == [x: .settled(0)])
    let after = members(own: own, revisions: [b: 1, x: 6], standings: standings, [absent])
    #expect(after.cuts.isEmpty)
    #expect(after.all == [a, b, x])
    let removed = retirement(of: x, by: a, at: 1, reason: .removed, lastRevision: 5)
    let stays = members(own: own, revisions: [b: 1, x: 6], standings: standings, [removed])
    #expect(stays.all == [a, b])
  }

  @Test func ofCrossedRetirementsTheEarlierCounts() {
    let crossed = [retirement(of: a, by: b, at: 2), retirement(of: b, by: a, at: 1)]
    let found = members(revisions: [b: 1], standings: [b: standing()], crossed)
    #expect(found.remaining == [a])
    #expect(found.cuts == [b: .settled(0)])
    let reversed = [retirement(of: a, by: b, at: 1), retirement(of: b, by: a, at: 2)]
    let other = members(revisions: [b: 1], standings: [b: standing()], reversed)
    #expect(other.remaining == [b])
    #expect(other.retirements.keys.sorted() == [a])
  }

  @Test func retirementsByOneWhoWasRetiredAreVoidAlongTheLine() {
    // B retires Y, Y retires X: Y's is later and void, so that X stays.
    let found = members(
      revisions: [b: 1, x: 1, y: 1],
      standings: [
        b: standing(commands: [b: 1, y: 1]), x: standing(commands: [b: 1, y: 1]),
      ],
      [retirement(of: y, by: b, at: 1), retirement(of: x, by: y, at: 2)])
    #expect(found.remaining == [a, b, x])
    // With X retiring B before all that, Y's counts again.
    let earlier = members(
      revisions: [b: 1, x: 1, y: 1], standings: [:],
      [
        retirement(of: b, by: x, at: 0), retirement(of: y, by: b, at: 1),
        retirement(of: x, by: y, at: 2),
      ])
    #expect(earlier.remaining == [a, y])
  }

  @Test func cancelledRetirementVoidsNothing() {
    let found = members(
      revisions: [b: 1, x: 1, y: 6], standings: [:],
      [
        retirement(of: y, by: b, at: 1, reason: .absent, lastRevision: 5),
        retirement(of: x, by: y, at: 2),
      ])
    #expect(found.remaining == [a, b, y])
  }

  @Test func nothingIsSettledWhileAMemberKnowsOfACommandThatIsNotKnownHere() {
    let found = members(
      own: standing(commands: [a: 1]), revisions: [b: 1, x: 1],
      standings: [b: standing(commands: [a: 1, b: 1])], [retirement(of: x, by: a, at: 1)])
    #expect(found.cuts == [x: .stopped(waitingFor: [b])])
  }

  @Test func oneOfTwoCommandsThatRetireTheSameIsEnough() {
    let found = members(
      own: standing(commands: [a: 1, b: 1]), revisions: [b: 1, c: 1, x: 1],
      standings: [
        b: standing(commands: [a: 1, b: 1]), c: standing(commands: [a: 1], applied: [x: 2]),
      ],
      [retirement(of: x, by: a, at: 1), retirement(of: x, by: b, at: 2)])
    #expect(found.cuts == [x: .settled(2)])
  }

  @Test func whoGoesByItselfHasSaidWhereItEnds() {
    var left = retirement(of: x, by: x, at: 1, reason: .left)
    left.changeHead = 6
    let found = members(
      own: standing(commands: [x: 1], applied: [x: 4]), revisions: [b: 1, x: 1],
      standings: [b: standing(applied: [x: 3])], [left])
    #expect(found.cuts == [x: .settled(6)])
    #expect(found.all == [a, b])
  }

  @Test func statesOfTwoStoresJoinToTheSameEitherWay() {
    let generation = IntegrityKey.random()
    var left = CommandState(generation: generation, client: c)
    left.processed = vector([a: 2, b: 1])
    left.retirements = [retirement(of: x, by: a, at: 1)]
    var right = CommandState(generation: generation, client: c)
    right.processed = vector([a: 1, b: 4])
    right.retirements = [retirement(of: x, by: a, at: 1), retirement(of: y, by: b, at: 3)]
    var one = left
    one.formUnion(right)
    var two = right
    two.formUnion(left)
    #expect(one == two)
    #expect(one.processed.number(of: a) == 2 && one.processed.number(of: b) == 4)
    #expect(one.retirements.map { $0.client } == [x, y])
  }

  @Test func stateOfAFormerIncarnationKeepsWhatWasPublished() throws {
    let generation = IntegrityKey.random()
    var state = CommandState(generation: generation, client: a)
    state.own.sealed = VersionVector.Entry(number: 3, hash: ContentHash(of: [3]))
    state.own.published = VersionVector.Entry(number: 2, hash: ContentHash(of: [2]))
    state.retirements = [
      retirement(of: x, by: a, number: 2, at: 1), retirement(of: y, by: a, number: 3, at: 2),
    ]
    let same = try CommandState.decoded(try state.encoded(), generation: generation, client: a)
    #expect(same == state)
    let other = try CommandState.decoded(try state.encoded(), generation: generation, client: b)
    #expect(other.commands.number(of: a) == 2)
    #expect(other.commands.number(of: b) == 0)
    #expect(other.retirements.map { $0.client } == [x])
    let later = try CommandState.decoded(try state.encoded(), generation: .random(), client: a)
    #expect(later.commands == VersionVector() && later.retirements.isEmpty)
  }
}
