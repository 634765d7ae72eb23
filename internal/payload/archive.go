package payload

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// An archive is a sequence of zstd frames. The decompressed content is:
//
//	"WMCOPAY1"
//	for each file or patch: 'F', its sha256 (32 bytes), its size (8 bytes, big endian), its content
//	'E', the number of files (4 bytes, big endian)
//
// The boundaries of frames have no meaning. An archive can therefore be assembled from frames compressed during the payload
// build.
const (
	archiveMagic = "WMCOPAY1"
	tagFile      = 'F'
	tagEnd       = 'E'
	fileHeader   = 1 + 32 + 8
)

const (
	// DefaultWindowBytes allows the encoder to share the common content of kubelet and kube-proxy. Unpacking needs
	// about this much memory.
	DefaultWindowBytes = 64 << 20
	minWindowBytes     = 64 << 10
	maxWindowBytes     = 128 << 20
	maxFileBytes       = 4 << 30
)

// Unpack reads an archive and passes each file to put. The content ends in io.EOF only if size and digest are
// correct, and otherwise in ErrDamaged. put must discard a file if it cannot read the content to the end. Unread
// content is verified as well. A truncated or modified archive results in ErrDamaged. Memory use does not depend on
// the size of the archive.
func Unpack(r io.Reader, put func(sum string, size int64, content io.Reader) error) error {
	decoder, err := newDecoder(r)
	if err != nil {
		return fmt.Errorf("unpack the payload: %w", err)
	}
	defer decoder.Close()
	u := unpacker{stream: bufio.NewReaderSize(decoder, 64<<10), put: put, seen: map[string]bool{}}
	if err := u.run(); err != nil {
		return fmt.Errorf("unpack the payload after %d complete files: %w", len(u.seen), err)
	}
	return nil
}

type unpacker struct {
	stream *bufio.Reader
	put    func(string, int64, io.Reader) error
	seen   map[string]bool
}

func (u *unpacker) run() error {
	magic := make([]byte, len(archiveMagic))
	if err := u.readFull(magic); err != nil {
		return err
	}
	if string(magic) != archiveMagic {
		return fmt.Errorf("%w: the data is not a payload archive", ErrDamaged)
	}
	for {
		tag, err := u.stream.ReadByte()
		if err != nil {
			return convertEOF(err)
		}
		switch tag {
		case tagFile:
			if err := u.unpackFile(); err != nil {
				return err
			}
		case tagEnd:
			return u.readEnd()
		default:
			return fmt.Errorf("%w: expected a file or the end, got byte %#02x", ErrDamaged, tag)
		}
	}
}

func (u *unpacker) unpackFile() error {
	header := make([]byte, fileHeader-1)
	if err := u.readFull(header); err != nil {
		return err
	}
	sum := hex.EncodeToString(header[:32])
	size := binary.BigEndian.Uint64(header[32:])
	if size > maxFileBytes {
		return fmt.Errorf("%w: file %s is declared with %d bytes", ErrDamaged, sum, size)
	}
	if u.seen[sum] {
		return fmt.Errorf("%w: the archive contains file %s twice", ErrDamaged, sum)
	}
	content := newVerifiedReader(u.stream, int64(size), sum)
	if err := u.put(sum, int64(size), content); err != nil {
		return fmt.Errorf("file %s: %w", sum, err)
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return fmt.Errorf("file %s: %w", sum, err)
	}
	u.seen[sum] = true
	return nil
}

func (u *unpacker) readEnd() error {
	count := make([]byte, 4)
	if err := u.readFull(count); err != nil {
		return err
	}
	if n := binary.BigEndian.Uint32(count); int64(n) != int64(len(u.seen)) {
		return fmt.Errorf("%w: the archive does not contain the declared %d files", ErrDamaged, n)
	}
	// Reading to the end makes the decoder verify the checksum of the stream.
	switch _, err := u.stream.ReadByte(); {
	case err == nil:
		return fmt.Errorf("%w: data follows the end", ErrDamaged)
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

func (u *unpacker) readFull(b []byte) error {
	_, err := io.ReadFull(u.stream, b)
	return convertEOF(err)
}

func convertEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: unexpected end of the data", ErrDamaged)
	}
	return err
}
