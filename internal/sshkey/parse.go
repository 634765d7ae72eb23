package sshkey

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"regexp"

	"golang.org/x/crypto/ssh"
)

// MinRSABits is the minimum length of an RSA key.
const MinRSABits = 2048

// Errors of Parse name the actual content and the next action. None contains any of the input.
var (
	ErrEmpty        = errors.New("the value is empty: store the private key, for example with kubectl create secret generic --from-file=private-key.pem=<file>")
	ErrNotPEM       = errors.New("the value is not in PEM form (a text that begins with -----BEGIN): store the file exactly as ssh-keygen wrote it")
	ErrEncodedTwice = errors.New("the value is base64-encoded twice: under data store the base64 text of the PEM file once, or put the PEM text under stringData")
	ErrPublicKey    = errors.New("the value is a public key: store the private key, the file of the pair without .pub")
	ErrCertificate  = errors.New("the value is a certificate: store the private key that belongs to it")
	ErrEncrypted    = errors.New("the value is protected by a passphrase: remove the passphrase with ssh-keygen -p and store the key again")
	ErrPuTTY        = errors.New("the value is in PuTTY's .ppk format: convert the key with puttygen <file> -O private-openssh -o private-key.pem")
	ErrDSA          = errors.New("the value is a DSA key, which SSH servers no longer accept: generate a new key with ssh-keygen -t rsa -b 4096 -m PEM or -t ed25519")
	ErrShortRSA     = errors.New("the value is an RSA key of less than 2048 bits: generate a new key with ssh-keygen -t rsa -b 4096 -m PEM or -t ed25519")
	ErrTrailing     = errors.New("data follows the private key: store one key and no other data")
	ErrUnsupported  = errors.New("the value is not a private key that can be used for SSH: store an RSA, ECDSA (P-256, P-384, P-521) or Ed25519 key in PKCS#1, PKCS#8 or OpenSSH form")
	ErrDamaged      = errors.New("the private key is damaged: store the key again, complete and unchanged")
)

// publicLine matches a line of an authorized_keys file or of a *.pub file.
var publicLine = regexp.MustCompile(`^(ssh-(rsa|dss|ed25519)|ecdsa-sha2-\S+|sk-\S+@openssh\.com) `)

// certificateLine matches the content of a *-cert.pub file.
var certificateLine = regexp.MustCompile(`^\S+-cert-v0[01]@openssh\.com `)

// Parse reads one unencrypted private key: RSA of at least 2048 bits, ECDSA or Ed25519 in PKCS#1, SEC 1, PKCS#8
// or OpenSSH form. The errors are listed above, fit after "Secret X, key Y cannot be used: ", and contain none
// of the input.
func Parse(data []byte) (Key, error) {
	block, err := privateKeyBlock(data)
	if err != nil {
		return Key{}, err
	}
	private, err := parseBlock(block)
	if err != nil {
		return Key{}, err
	}
	if err := checkPrivateKey(private); err != nil {
		return Key{}, err
	}
	key, err := newKey(private)
	if err != nil {
		return Key{}, ErrUnsupported
	}
	return key, nil
}

// byteOrderMark begins a UTF-8 text saved by an editor of Windows.
var byteOrderMark = []byte("\xef\xbb\xbf")

// privateKeyBlock finds the single PEM block with the private key.
func privateKeyBlock(data []byte) (*pem.Block, error) {
	text := bytes.TrimSpace(bytes.TrimPrefix(data, byteOrderMark))
	block, rest := pem.Decode(text)
	if block != nil && block.Type == "EC PARAMETERS" {
		// openssl ecparam -genkey writes the name of the curve before the key.
		block, rest = pem.Decode(rest)
	}
	switch {
	case len(text) == 0:
		return nil, ErrEmpty
	case block == nil:
		return nil, withoutPEM(text)
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, ErrTrailing
	}
	return block, nil
}

// withoutPEM returns the error for the apparent content of a text without PEM block.
func withoutPEM(text []byte) error {
	switch {
	case bytes.HasPrefix(text, []byte("PuTTY-User-Key-File-")):
		return ErrPuTTY
	case certificateLine.Match(text):
		return ErrCertificate
	case publicLine.Match(text), bytes.HasPrefix(text, []byte("---- BEGIN SSH2 PUBLIC KEY")):
		return ErrPublicKey
	case isBase64OfPEM(text):
		return ErrEncodedTwice
	case bytes.Contains(text, []byte("-----BEGIN ")):
		return ErrDamaged
	}
	return ErrNotPEM
}

func isBase64OfPEM(text []byte) bool {
	compact := bytes.Join(bytes.Fields(text), nil)
	decoded := make([]byte, base64.StdEncoding.DecodedLen(len(compact)))
	n, err := base64.StdEncoding.Decode(decoded, compact)
	return err == nil && bytes.Contains(decoded[:n], []byte("-----BEGIN "))
}

// parseBlock decodes the block by its type. The errors of the decoders are dropped, because decoders may quote
// the input.
func parseBlock(block *pem.Block) (any, error) {
	var key any
	var err error
	switch block.Type {
	case "RSA PRIVATE KEY", "EC PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY":
		key, err = ssh.ParseRawPrivateKey(pem.EncodeToMemory(block))
	case "DSA PRIVATE KEY":
		return nil, ErrDSA
	case "ENCRYPTED PRIVATE KEY":
		return nil, ErrEncrypted
	case "PUBLIC KEY", "RSA PUBLIC KEY", "EC PUBLIC KEY":
		return nil, ErrPublicKey
	case "CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE":
		return nil, ErrCertificate
	default:
		return nil, ErrUnsupported
	}
	var needsPassphrase *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &needsPassphrase):
		return nil, ErrEncrypted
	case err != nil && isShortRSA(block):
		return nil, ErrShortRSA
	case err != nil && isDSA(block):
		return nil, ErrDSA
	case err != nil:
		return nil, ErrDamaged
	}
	return key, nil
}

// checkPrivateKey refuses decoded keys that must not or cannot be used.
func checkPrivateKey(private any) error {
	switch key := private.(type) {
	case *rsa.PrivateKey:
		if key.N.BitLen() < MinRSABits {
			return ErrShortRSA
		}
	case ed25519.PrivateKey, *ed25519.PrivateKey, *ecdsa.PrivateKey:
	default:
		return ErrUnsupported
	}
	return nil
}

// isShortRSA reports whether the decoder refused a PKCS#1 key because the key is much too short.
func isShortRSA(block *pem.Block) bool {
	var head struct {
		Version int
		N       *big.Int
	}
	if block.Type != "RSA PRIVATE KEY" {
		return false
	}
	_, err := asn1.Unmarshal(block.Bytes, &head)
	return err == nil && head.N != nil && head.N.Sign() > 0 && head.N.BitLen() < MinRSABits
}

// isDSA reports whether a PKCS#8 or OpenSSH container holds a DSA key, which the decoders do not support.
func isDSA(block *pem.Block) bool {
	switch block.Type {
	case "OPENSSH PRIVATE KEY":
		return bytes.Contains(block.Bytes, []byte("\x00\x00\x00\x07ssh-dss"))
	case "PRIVATE KEY":
		// The DER form of OID 1.2.840.10040.4.1 (id-dsa).
		return bytes.Contains(block.Bytes, []byte{0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x38, 0x04, 0x01})
	}
	return false
}
