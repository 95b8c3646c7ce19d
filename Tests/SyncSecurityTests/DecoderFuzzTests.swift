import SyncModel
import Testing

@testable import SyncSecurity

/// Every decoder gets what nothing has made: it refuses, and never ends the process.
@Suite struct DecoderFuzzTests {
  /// Changes some bytes, or exchanges parts.
  private static func changed(
    _ bytes: [UInt8], _ generator: inout SeededGenerator
  ) -> [UInt8] {
    var bytes = bytes
    for _ in 0...generator.below(4) where !bytes.isEmpty {
      let position = generator.below(bytes.count)
      switch generator.below(6) {
      case 0: bytes[position] = UInt8(truncatingIfNeeded: generator.next())
      case 1: bytes[position] = generator.once(in: 2) ? 0xFF : 0
      case 2: bytes.removeLast(generator.below(bytes.count))
      case 3: bytes.insert(contentsOf: generator.bytes(generator.below(9)), at: position)
      case 4:
        for index in position..<min(position + 8, bytes.count) { bytes[index] = 0xFF }
      default: bytes.remove(at: position)
      }
    }
    return bytes
  }

  @Test func nothingBreaksADecoder() throws {
    var world = try TestWorld(seed: 51)
    var owner = try world.owner()
    let guest = try world.guest(.writer, by: &owner)
    try world.makeEpoch(by: &owner)
    try world.makeEpoch(by: &owner)
    let invitation = Invitation(
      root: world.root, inviter: owner.device, document: world.document,
      generation: world.generation, number: 1, using: &world.generator)
    let request = try InvitationRequest.sealed(
      by: guest.keys, person: "x", for: invitation, using: &world.generator)
    let slot = try Slot(
      sealing: world.secret, for: .recoveryKey(.random(using: &world.generator)),
      root: world.root, using: &world.generator
    ).encoded()
    let statements = try StatementTests.samples()
    let sealed = try world.seal([1, 2, 3], by: owner)
    let opener = world.opener(of: owner)
    var stored = StoredKeys(device: owner.keys)
    stored.epochs = world.keyRing.keys
    let keys = stored.encoded()
    var generator = SeededGenerator(seed: 52)
    var opened = 0
    func attempt(_ body: () throws -> Void) {
      do {
        try body()
        opened += 1
      } catch {
        return
      }
    }
    for round in 0..<3000 {
      let statement = statements[round % statements.count]
      // The hash is made right, so that the reader of the body is reached.
      let body = Statement.body(
        statement.root, statement.author, statement.number, statement.previous, statement.content)
      let form = OuterForm(
        type: .statement, body: Self.changed(body, &generator), signature: statement.signature)
      attempt {
        let found = try Statement(decoding: form.encoded())
        // What is taken is what would be written.
        #expect(found.encoded() == form.encoded())
      }
      let files = [
        Self.changed(statement.encoded(), &generator), Self.changed(request, &generator),
        Self.changed(slot, &generator), Self.changed(keys, &generator),
        Self.changed(sealed.bytes, &generator),
      ]
      attempt { _ = try Statement(decoding: files[0]) }
      attempt { _ = try InvitationRequest(opening: files[1], for: invitation) }
      attempt { _ = try Slot(decoding: files[2]) }
      attempt { _ = try StoredKeys(decoding: files[3]) }
      attempt { _ = try opener.open(files[4], at: sealed.place) }
      attempt {
        _ = try Invitation(
          String(decoding: Self.changed(Array(invitation.text.utf8), &generator), as: UTF8.self))
      }
    }
    // Some changes are those of a signature, or change a byte to itself.
    #expect(opened < 1500)
  }
}
