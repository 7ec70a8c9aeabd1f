//! Milenage, the algorithm set of AKA, on AES-128 ([TS 35.206 §4.1]).
//!
//! The network and the ISIM share K and OPc. From RAND and SQN follow a challenge that proves the
//! network (AUTN), the answer that proves the terminal (RES), and two keys.
use aes::Aes128;
use aes::cipher::{BlockEncrypt, KeyInit};

/// 16 bytes.
pub type Block = [u8; 16];

/// The secrets of a subscription.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secrets {
    /// Subscriber key K.
    pub k: Block,
    /// OPc: the operator's constant, encrypted with K.
    pub opc: Block,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets")
    }
}

/// What Milenage computes from a RAND, an SQN and an AMF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector {
    /// f1: proves the network to the terminal.
    pub mac_a: [u8; 8],
    /// f1*: proves the terminal in a resynchronisation.
    pub mac_s: [u8; 8],
    /// f2: the answer of the terminal.
    pub res: [u8; 8],
    /// f3: cipher key.
    pub ck: Block,
    /// f4: integrity key.
    pub ik: Block,
    /// f5: hides SQN.
    pub ak: [u8; 6],
    /// f5*: hides SQN in a resynchronisation.
    pub ak_star: [u8; 6],
}

impl Vector {
    /// AUTN: SQN xor AK, AMF and MAC-A ([TS 33.102 §6.3.2]).
    pub fn autn(&self, sqn: [u8; 6], amf: [u8; 2]) -> Block {
        let mut autn = [0; 16];
        for (at, byte) in autn[..6].iter_mut().enumerate() {
            *byte = sqn[at] ^ self.ak[at];
        }
        autn[6..8].copy_from_slice(&amf);
        autn[8..].copy_from_slice(&self.mac_a);
        autn
    }
}

impl Secrets {
    /// Secrets with OPc from the operator's constant OP ([TS 35.206 §4.1]).
    pub fn from_op(k: Block, op: Block) -> Self {
        Self { k, opc: xor(encrypt(&k, op), op) }
    }

    /// Computes f1 to f5* ([TS 35.206 §4.1]).
    pub fn vector(&self, rand: Block, sqn: [u8; 6], amf: [u8; 2]) -> Vector {
        let temp = encrypt(&self.k, xor(rand, self.opc));
        let mut in1 = [0; 16];
        for half in in1.chunks_exact_mut(8) {
            half[..6].copy_from_slice(&sqn);
            half[6..].copy_from_slice(&amf);
        }
        // Rotation r1 = 64 bits, constant c1 = 0.
        let out1 = xor(encrypt(&self.k, xor(temp, rotated(xor(in1, self.opc), 8))), self.opc);
        // Rotations and constants of OUT2 to OUT5, in bytes.
        let out = |rotation: usize, constant: u8| {
            let mut input = rotated(xor(temp, self.opc), rotation);
            input[15] ^= constant;
            xor(encrypt(&self.k, input), self.opc)
        };
        let (out2, out3, out4, out5) = (out(0, 1), out(4, 2), out(8, 4), out(12, 8));
        Vector {
            mac_a: part(&out1[..8]),
            mac_s: part(&out1[8..]),
            res: part(&out2[8..]),
            ck: out3,
            ik: out4,
            ak: part(&out2[..6]),
            ak_star: part(&out5[..6]),
        }
    }

    /// The SQN in an AUTS, if its MAC-S is right ([TS 33.102 §6.3.5]).
    pub fn resynchronised(&self, rand: Block, auts: [u8; 14]) -> Option<[u8; 6]> {
        let ak_star = self.vector(rand, [0; 6], [0; 2]).ak_star;
        let mut sqn = [0; 6];
        for (at, byte) in sqn.iter_mut().enumerate() {
            *byte = auts[at] ^ ak_star[at];
        }
        // The AMF is zero in a resynchronisation.
        (self.vector(rand, sqn, [0; 2]).mac_s == auts[6..]).then_some(sqn)
    }
}

fn part<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("the caller takes N bytes of a block")
}

fn xor(a: Block, b: Block) -> Block {
    std::array::from_fn(|at| a[at] ^ b[at])
}

/// Rotated to the left by whole bytes.
fn rotated(block: Block, bytes: usize) -> Block {
    std::array::from_fn(|at| block[(at + bytes) % 16])
}

/// AES-128 of one block ([FIPS197 §5.1]).
fn encrypt(key: &Block, block: Block) -> Block {
    let mut block = block.into();
    Aes128::new(key.into()).encrypt_block(&mut block);
    block.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<const N: usize>(hex: &str) -> [u8; N] {
        let digits: Vec<u8> = (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect();
        digits.try_into().unwrap()
    }

    // [FIPS197 §C.1]
    #[test]
    fn aes_encrypts_the_example_of_its_standard() {
        let key = bytes("000102030405060708090a0b0c0d0e0f");
        let block = encrypt(&key, bytes("00112233445566778899aabbccddeeff"));
        assert_eq!(block, bytes("69c4e0d86a7b0430d8cdb78070b4c55a"));
    }

    // [TS 35.208 §4.3, test set 1]
    #[test]
    fn the_first_published_test_set_holds() {
        let secrets = Secrets::from_op(
            bytes("465b5ce8b199b49faa5f0a2ee238a6bc"),
            bytes("cdc202d5123e20f62b6d676ac72cb318"),
        );
        assert_eq!(secrets.opc, bytes("cd63cb71954a9f4e48a5994e37a02baf"));
        let rand = bytes("23553cbe9637a89d218ae64dae47bf35");
        let vector = secrets.vector(rand, bytes("ff9bb4d0b607"), bytes("b9b9"));
        assert_eq!(vector.mac_a, bytes("4a9ffac354dfafb3"));
        assert_eq!(vector.mac_s, bytes("01cfaf9ec4e871e9"));
        assert_eq!(vector.res, bytes("a54211d5e3ba50bf"));
        assert_eq!(vector.ck, bytes("b40ba9a3c58b2a05bbf0d987b21bf8cb"));
        assert_eq!(vector.ik, bytes("f769bcd751044604127672711c6d3441"));
        assert_eq!(vector.ak, bytes("aa689c648370"));
        assert_eq!(vector.ak_star, bytes("451e8beca43b"));
    }

    // [TS 33.102 §6.3.3]
    #[test]
    fn a_resynchronisation_gives_the_sqn_of_the_terminal() {
        let secrets = Secrets { k: [1; 16], opc: [2; 16] };
        let (rand, sqn) = ([3; 16], [0, 0, 0, 0, 1, 2]);
        let vector = secrets.vector(rand, sqn, [0; 2]);
        let mut auts = [0; 14];
        for at in 0..6 {
            auts[at] = sqn[at] ^ vector.ak_star[at];
        }
        auts[6..].copy_from_slice(&vector.mac_s);
        assert_eq!(secrets.resynchronised(rand, auts), Some(sqn));
        auts[13] ^= 1;
        assert_eq!(secrets.resynchronised(rand, auts), None);
    }
}
