package payload

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"
)

// contentReader reads a complete stream, which must contain exactly one file.
type contentReader struct {
	*verifiedReader
	close func() error
}

func (c *contentReader) Read(b []byte) (int, error) {
	n, err := c.verifiedReader.Read(b)
	if errors.Is(err, io.EOF) {
		// Reading past the content also makes a decoder verify the checksum of the stream.
		extra, more := io.ReadFull(c.source, make([]byte, 1))
		switch {
		case extra != 0:
			return n, fmt.Errorf("%w: content continues after its %d bytes", ErrDamaged, c.size)
		case !errors.Is(more, io.EOF):
			return n, more
		}
	}
	return n, err
}

func (c *contentReader) Close() error { return c.close() }

// verifiedReader reads size bytes of a source and returns io.EOF only if the bytes match the digest.
type verifiedReader struct {
	source    io.Reader
	size      int64
	remaining int64
	sum       string
	hash      hash.Hash
	err       error
}

func newVerifiedReader(source io.Reader, size int64, sum string) *verifiedReader {
	return &verifiedReader{source: source, size: size, remaining: size, sum: sum, hash: sha256.New()}
}

func (v *verifiedReader) Read(b []byte) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	if v.remaining == 0 {
		v.err = io.EOF
		if got := hex.EncodeToString(v.hash.Sum(nil)); got != v.sum {
			v.err = fmt.Errorf("%w: content has sha256 %s, expected %s", ErrDamaged, got, v.sum)
		}
		return 0, v.err
	}
	if int64(len(b)) > v.remaining {
		b = b[:v.remaining]
	}
	n, err := v.source.Read(b)
	v.remaining -= int64(n)
	v.hash.Write(b[:n])
	if err == nil || v.remaining == 0 {
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: content ends after %d of %d bytes", ErrDamaged, v.size-v.remaining, v.size)
	}
	v.err = err
	return n, err
}

// decoder decompresses a stream and distinguishes damage of the stream from an error of the underlying reader.
type decoder struct {
	*zstd.Decoder
	source *sourceErrors
}

func newDecoder(r io.Reader, more ...zstd.DOption) (*decoder, error) {
	source := &sourceErrors{r: r}
	// One goroutine and little memory: many simulated hosts unpack in one process, and a real host has better uses
	// for both.
	options := []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindowBytes)}
	d, err := zstd.NewReader(source, append(options, more...)...)
	if err != nil {
		return nil, err
	}
	return &decoder{Decoder: d, source: source}, nil
}

func (d *decoder) Read(b []byte) (int, error) {
	n, err := d.Decoder.Read(b)
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return n, err
	case d.source.err != nil:
		return n, d.source.err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return n, fmt.Errorf("%w: unexpected end of the data", ErrDamaged)
	default:
		return n, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
}

// sourceErrors records the error of its reader.
type sourceErrors struct {
	r   io.Reader
	err error
}

func (s *sourceErrors) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}
