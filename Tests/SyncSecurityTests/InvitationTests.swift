import SyncModel
import Testing

@testable import SyncSecurity

/// Invitations: the line, the request, and the one answer.
@Suite struct InvitationTests {
  private static func invitation(_ world: inout TestWorld) throws -> Invitation {
    let owner = try world.owner()
    return Invitation(
      root: world.root, inviter: owner.device, document: world.document,
      generation: world.generation, number: 3, using: &world.generator)
  }

  @Test func lineIsReadAsItWasPrinted() throws {
    var world = try TestWorld()
    let invitation = try Self.invitation(&world)
    let line = invitation.text
    #expect(line.count == 178)
    #expect(!line.contains { $0.isWhitespace })
    #expect(try Invitation(line) == invitation)
    #expect(try Invitation("  " + line.uppercased() + "\n") == invitation)
    #expect(try Invitation(line.prefix(80) + "\n" + line.dropFirst(80)) == invitation)
  }

  @Test func mistypedLineIsRefused() throws {
    var world = try TestWorld()
    let line = try Self.invitation(&world).text
    for position in 0..<line.count {
      var characters = Array(line)
      characters[position] = characters[position] == "b" ? "c" : "b"
      let error = #expect(throws: SecurityError.self) { try Invitation(String(characters)) }
      #expect(error?.code == .invitationMistyped)
      #expect(error.map { "\($0)".contains(line.suffix(40)) } == false)
    }
    for text in ["", "ds1", String(line.dropLast()), line + "a", String(line.dropFirst(3))] {
      #expect(throws: SecurityError.self) { try Invitation(text) }
    }
  }

  @Test func requestIsOpenedByTheInvitationAlone() throws {
    var world = try TestWorld()
    let invitation = try Self.invitation(&world)
    let guest = try world.device()
    let file = try InvitationRequest.sealed(
      by: guest.keys, person: "Zoë", for: invitation, using: &world.generator)
    let request = try InvitationRequest(opening: file, for: invitation)
    #expect(request.keys == guest.keys.publicKeys && request.person == "Zoë")
    let long = try InvitationRequest.sealed(
      by: guest.keys, person: String(repeating: "x", count: 255), for: invitation,
      using: &world.generator)
    #expect(long.count == file.count)

    // Each part of the invitation binds it.
    var others: [Invitation] = []
    for part in 0..<5 {
      var other = invitation
      switch part {
      case 0: other.root = .random(using: &world.generator)
      case 1: other.inviter = .random(using: &world.generator)
      case 2: other.document = .random(using: &world.generator)
      case 3: other.generation = .random(using: &world.generator)
      default: other.number += 1
      }
      others.append(other)
    }
    others.append(
      Invitation(
        root: invitation.root, inviter: invitation.inviter, document: invitation.document,
        generation: invitation.generation, number: invitation.number, using: &world.generator))
    for other in others {
      #expect(throws: (any Error).self) { try InvitationRequest(opening: file, for: other) }
      #expect(InvitationRequest.name(for: other) != InvitationRequest.name(for: invitation))
    }
  }

  @Test func everyChangedByteOfARequestIsRefused() throws {
    var world = try TestWorld()
    let invitation = try Self.invitation(&world)
    let guest = try world.device()
    let file = try InvitationRequest.sealed(
      by: guest.keys, person: "", for: invitation, using: &world.generator)
    for position in file.indices where position < 200 || position % 29 == 0 {
      var changed = file
      changed[position] ^= 4
      #expect(throws: (any Error).self) {
        try InvitationRequest(opening: changed, for: invitation)
      }
    }
  }

  @Test func requestNotSignedByItsKeysIsRefused() throws {
    // Who has the line, and no private key of the device that the request names.
    var world = try TestWorld()
    let invitation = try Self.invitation(&world)
    let victim = try world.device()
    let thief = try world.device()
    let forged = try InvitationRequest.sealed(
      victim.keys.publicKeys, signing: thief.keys.signing, person: "", for: invitation,
      salt: world.generator.bytes(16))
    let error = #expect(throws: SecurityError.self) {
      try InvitationRequest(opening: forged, for: invitation)
    }
    #expect(error?.detail == "request: signature")
  }

  @Test func firstRequestIsAnsweredAndNoSecond() throws {
    var world = try TestWorld()
    let invitation = try Self.invitation(&world)
    var pending = PendingInvitation(invitation, role: .writer, expiresMilliseconds: 1000)
    let first = try world.device()
    let second = try world.device()
    let files = try [first, second].map {
      try InvitationRequest.sealed(
        by: $0.keys, person: "", for: invitation, using: &world.generator)
    }
    #expect(pending.answer([], at: 5) == nil)
    #expect(pending.answer([[1, 2, 3]], at: 5) == nil)
    #expect(pending.answer([[1, 2, 3], files[0], files[1], files[0]], at: 5) == 1)
    guard case .answered(let answer) = pending.state else {
      Issue.record("not answered")
      return
    }
    #expect(answer.keys == first.keys.publicKeys && answer.number == 3)
    #expect(pending.answer([files[1]], at: 6) == nil)
    // The secret is gone.
    var text = ""
    dump(pending, to: &text)
    #expect(!text.contains("a secret"))
  }

  @Test func expiredInvitationIsNotAnswered() throws {
    var world = try TestWorld()
    let invitation = try Self.invitation(&world)
    let guest = try world.device()
    let file = try InvitationRequest.sealed(
      by: guest.keys, person: "", for: invitation, using: &world.generator)
    var pending = PendingInvitation(invitation, role: .reader, expiresMilliseconds: 1000)
    #expect(pending.answer([file], at: 1000) == nil)
    #expect(pending.answer([file], at: 999) == 0)
    #expect(PendingInvitation(invitation, role: .owner, expiresMilliseconds: nil).role == .writer)
  }
}
