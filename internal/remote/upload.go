package remote

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/pkg/sftp"
)

// maxPacketsInFlight is the maximum number of unanswered write requests: 64 requests of 32 KiB fill an SSH channel's
// window.
const maxPacketsInFlight = 64

// partialSuffix marks files that are being uploaded; random characters follow.
const partialSuffix = ".partial-"

// Upload writes a file of the given size in bytes. The content is written to a temporary file in the same directory,
// which is then renamed, so that no reader sees an incomplete file. Upload creates missing directories, replaces an
// existing file, and removes leftovers of interrupted uploads of this file. progress (may be nil) is called with the
// bytes handed to the connection, at most 2 MiB ahead of the host.
func (c *Connection) Upload(ctx context.Context, windows string, size int64, r io.Reader,
	progress func(done, total int64)) error {
	target, err := sftpPath(windows)
	if err != nil {
		return err
	}
	partial, err := c.partialName(target)
	if err != nil {
		return err
	}
	source := &source{ctx: ctx, reader: r, size: size, progress: progress}
	u := &upload{connection: c, target: target, partial: partial, source: source}
	waiting, limit := "a response while sending "+windows, c.limits.transferTimeout(source.size)
	err = c.runFileOperation(ctx, waiting, limit, func(ctx context.Context, s *fileSession) error {
		return u.run(ctx, s)
	})
	return c.callerError(ctx, err, func(err error) error { return u.uploadError(ctx, windows, err) })
}

// resumeSuffix marks partial files of resumable uploads: the names of the files are content-addressed.
const resumeSuffix = partialSuffix + "resume"

// maxGapBytes is the length in bytes of the end of an interrupted upload that may have gaps: the packets in flight.
// This part is sent again.
const maxGapBytes = maxPacketsInFlight * 32 << 10

// Send is like Upload for a file with a content-addressed name and resumes an interrupted Send. The receiver must
// verify the content, because the beginning may have another origin. Send removes leftovers of interrupted Sends of
// other files in the directory, because only the most recent one is resumed.
func (c *Connection) Send(ctx context.Context, windows string, content *io.SectionReader,
	progress func(done, total int64)) error {
	target, err := sftpPath(windows)
	if err != nil {
		return err
	}
	source := &source{ctx: ctx, reader: content, size: content.Size(), progress: progress}
	u := &upload{connection: c, target: target, partial: target + resumeSuffix, source: source, resume: content}
	waiting, limit := "a response while sending "+windows, c.limits.transferTimeout(source.size)
	err = c.runFileOperation(ctx, waiting, limit, func(ctx context.Context, s *fileSession) error {
		err := u.run(ctx, s)
		if err == nil || !u.barred || ctx.Err() != nil || s.hasEnded() {
			return err
		}
		// The server process of an interrupted connection may hold the file until the host detects the interruption.
		if restartErr := u.startOver(); restartErr != nil {
			return errors.Join(err, restartErr)
		}
		if err = u.run(ctx, s); err == nil {
			// If the file is still held, the next upload to this directory removes it.
			_ = s.Remove(u.kept)
		}
		return err
	})
	return c.callerError(ctx, err, func(err error) error { return u.uploadError(ctx, windows, err) })
}

// partialName returns a new temporary name beside target.
func (c *Connection) partialName(target string) (string, error) {
	var random [4]byte
	if _, err := io.ReadFull(c.rand, random[:]); err != nil {
		return "", fmt.Errorf("generate a temporary file name: %w", err)
	}
	return target + partialSuffix + hex.EncodeToString(random[:]), nil
}

// source is the content of an upload. Reads fail when ctx has ended.
type source struct {
	ctx      context.Context
	reader   io.Reader
	size     int64
	progress func(done, total int64)

	read int64
	err  error // error of the reader
}

func (s *source) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, context.Cause(s.ctx)
	}
	n, err := s.reader.Read(p)
	s.read += int64(n)
	switch {
	case s.read > s.size:
		err = fmt.Errorf("the content is longer than the announced %d bytes", s.size)
		s.err = err
	case errors.Is(err, io.EOF) && s.read < s.size:
		err = fmt.Errorf("the content ends after %d of %d bytes: %w", s.read, s.size, io.ErrUnexpectedEOF)
		s.err = err
	case err != nil && !errors.Is(err, io.EOF):
		s.err = err
	}
	if n > 0 && s.progress != nil {
		s.progress(s.read, s.size)
	}
	return n, err
}

// upload is one running upload.
type upload struct {
	connection      *Connection
	target, partial string
	source          *source
	resume          io.Seeker // set if the upload may resume an interrupted one; otherwise nil
	writing         bool      // content is being written: a failure may be caused by a full volume
	resumed         bool      // an earlier upload left some or all of the content
	barred          bool      // the file to resume could not be opened, or the resumed file could not be renamed
	kept            string    // the barred file, kept for the next attempt in case the restarted upload fails; otherwise empty
}

// startOver resets the upload to the beginning of the content, under another name.
func (u *upload) startOver() (err error) {
	u.kept = u.partial
	if u.partial, err = u.connection.partialName(u.target); err != nil {
		return err
	}
	_, err = u.resume.Seek(0, io.SeekStart)
	u.resume, u.source.read, u.writing, u.resumed, u.barred = nil, 0, false, false, false
	return err
}

func (u *upload) run(ctx context.Context, s *fileSession) error {
	file, err := u.openPartial(s)
	if err == nil {
		err = u.write(s, file)
	}
	if err != nil {
		// An upload canceled by the caller can be resumed later, so its file is kept.
		if file != nil && !s.hasEnded() && (u.resume == nil || u.source.ctx.Err() == nil) {
			// The file uses space, perhaps the last. If this fails too, the next upload removes the file.
			_ = s.Remove(u.partial)
		}
		return err
	}
	u.writing = false
	return u.renameWithRetry(ctx, s)
}

// openPartial opens the temporary file, creates its directory, and removes leftovers from an existing directory.
// Independent requests are sent concurrently because the round trip to a host may be long.
func (u *upload) openPartial(s *fileSession) (*sftp.File, error) {
	folder, flags := path.Dir(u.target), os.O_WRONLY|os.O_CREATE
	if u.resume == nil {
		flags |= os.O_TRUNC
	}
	var entries []fs.FileInfo
	var before fs.FileInfo // the file of an interrupted upload to resume
	var file *sftp.File
	var listErr, statErr, err error
	runConcurrently(
		func() { entries, listErr = s.ReadDir(folder) },
		func() {
			if u.resume != nil {
				before, statErr = s.Stat(u.partial)
			}
		},
		func() { file, err = s.OpenFile(u.partial, flags) },
	)
	if err != nil && (errors.Is(err, fs.ErrNotExist) || errors.Is(listErr, fs.ErrNotExist)) {
		entries, listErr, before, statErr = nil, nil, nil, nil
		if err := createDirectories(s, folder); err != nil {
			return nil, err
		}
		file, err = s.OpenFile(u.partial, flags)
	}
	u.writing = true
	if err != nil {
		u.barred = u.resume != nil
		return nil, err
	}
	if errors.Is(statErr, fs.ErrNotExist) {
		before, statErr = nil, nil
	}
	if errors.Is(listErr, fs.ErrNotExist) {
		listErr = nil // another upload has just created the directory
	}
	if err := errors.Join(listErr, statErr); err != nil {
		return file, errors.Join(err, file.Close())
	}
	u.removeLeftovers(s, entries)
	return u.seekToStart(s, file, before)
}

// runConcurrently runs all functions concurrently and waits for them.
func runConcurrently(work ...func()) {
	var group sync.WaitGroup
	for _, do := range work {
		group.Go(do)
	}
	group.Wait()
}

// removeLeftovers removes leftovers of earlier uploads from the directory.
func (u *upload) removeLeftovers(s *fileSession, entries []fs.FileInfo) {
	leftover := strings.ToLower(path.Base(u.target) + partialSuffix)
	for _, entry := range entries {
		name := strings.ToLower(entry.Name())
		stale := strings.HasPrefix(name, leftover) || u.resume != nil && strings.HasSuffix(name, resumeSuffix)
		if stale && !strings.EqualFold(name, path.Base(u.partial)) && !strings.EqualFold(name, path.Base(u.kept)) {
			// A file that is still open cannot be removed and does no harm.
			_ = s.Remove(path.Join(path.Dir(u.target), entry.Name()))
		}
	}
}

// seekToStart seeks to the start offset of the upload. before describes the file of an interrupted upload, or is nil.
func (u *upload) seekToStart(s *fileSession, file *sftp.File, before fs.FileInfo) (*sftp.File, error) {
	if before == nil || before.Size() == 0 && before.Mode().IsRegular() {
		return file, nil
	}
	if !before.Mode().IsRegular() || before.Size() < 0 || before.Size() > u.source.size {
		// The file cannot be the beginning of this content.
		if err := file.Close(); err != nil {
			return file, err
		}
		return s.OpenFile(u.partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	}
	offset := max(before.Size()-maxGapBytes, 0)
	_, err := u.resume.Seek(offset, io.SeekStart)
	if err == nil {
		_, err = file.Seek(offset, io.SeekStart)
	}
	if err != nil {
		return file, errors.Join(err, file.Close())
	}
	u.source.read, u.resumed = offset, true
	return file, nil
}

// write sends the content and verifies that all bytes arrived. Servers that answer in order report the size after
// closing the file. For other servers, the size is requested again, because Windows may report an old size for an
// open file.
func (u *upload) write(s *fileSession, file *sftp.File) error {
	_, err := file.ReadFromWithConcurrency(u.source, maxPacketsInFlight)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	var info fs.FileInfo
	var closeErr error
	runConcurrently(func() { closeErr = file.Close() }, func() { info, err = s.Stat(u.partial) })
	if closeErr != nil {
		return closeErr
	}
	if err != nil || info.Size() != u.source.size {
		if info, err = s.Stat(u.partial); err != nil {
			return err
		}
	}
	if info.Size() != u.source.size {
		return fmt.Errorf("only %d of %d bytes arrived", info.Size(), u.source.size)
	}
	return nil
}

// renameDelays returns the delays between attempts of a refused rename: 2 s in total. Virus scanners open each new
// file, and Windows refuses to rename an open file.
func renameDelays() []time.Duration {
	return []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 350 * time.Millisecond,
		500 * time.Millisecond, 800 * time.Millisecond}
}

// renameWithRetry renames the file to its final name. If the rename is refused, a resumable file is kept, because it is
// complete.
func (u *upload) renameWithRetry(ctx context.Context, s *fileSession) error {
	err := u.renamePartial(s)
	for _, delay := range renameDelays() {
		if err == nil || errors.Is(err, fs.ErrNotExist) || s.hasEnded() {
			break
		}
		timer := u.connection.clock.NewTimer(delay)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
		err = u.renamePartial(s)
	}
	if err == nil {
		return nil
	}
	if u.resume == nil {
		_ = s.Remove(u.partial)
	}
	u.barred = u.resumed // a new file is not barred: a scanner would open the next one, too
	if errors.Is(err, fs.ErrPermission) {
		// The user may write to the directory, so permissions are not the cause.
		return fmt.Errorf("the host refuses to rename the file from %s: another program, perhaps a virus scanner, has the file open",
			windowsPath(u.partial))
	}
	return fmt.Errorf("rename the received file: %w", err)
}

// renamePartial renames the partial file to its target. Servers differ in whether a rename replaces an existing file.
func (u *upload) renamePartial(s *fileSession) error {
	if s.Rename(u.partial, u.target) == nil {
		return nil
	}
	_ = s.Remove(u.target)
	return s.Rename(u.partial, u.target)
}
