package payload

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func mustHex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

func TestPacker(t *testing.T) {
	newPacker := func(t *testing.T) (*Packer, string) {
		t.Helper()
		_, p := writeTest(t, true)
		dir := filepath.Join(t.TempDir(), "archives")
		k, err := NewPacker(p, dir)
		if err != nil {
			t.Fatal(err)
		}
		return k, dir
	}
	t.Run("fifty hosts that need the same set share one archive", func(t *testing.T) {
		k, dir := newPacker(t)
		archives := make([]*Archive, 50)
		var group sync.WaitGroup
		for i := range archives {
			group.Go(func() {
				sums := []string{sumOf(kubelet), sumOf(agent)}
				if i%2 == 1 {
					sums[0], sums[1] = sums[1], sums[0]
				}
				archive, err := k.Packed(t.Context(), sums)
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := unpack(archive.Reader()); err != nil || len(got) != 2 {
					t.Errorf("got %d files, error %v", len(got), err)
				}
				archives[i] = archive
			})
		}
		group.Wait()
		for _, archive := range archives {
			if archive != archives[0] {
				t.Fatal("two archives were made")
			}
		}
		content, err := io.ReadAll(archives[0].Reader())
		if err != nil || sumOf(content) != archives[0].SHA256 || int64(len(content)) != archives[0].Size {
			t.Errorf("size or digest of the archive is wrong, error %v", err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("%d files lie in %s, error %v", len(left), dir, err)
		}
	})
	t.Run("an archive that was pushed out stays readable for who holds it", func(t *testing.T) {
		k, _ := newPacker(t)
		sums := []string{sumOf(kubelet), sumOf(agent), sumOf(azure), sumOf(empty), sumOf(shared)}
		var first *Archive
		for mask := 1; mask <= keptArchives+1; mask++ {
			var set []string
			for i, sum := range sums {
				if mask&(1<<i) != 0 {
					set = append(set, sum)
				}
			}
			archive, err := k.Packed(t.Context(), set)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = archive
			}
		}
		if k.recent.Len() != keptArchives || k.kept(first.set) != nil {
			t.Errorf("%d archives are kept", k.recent.Len())
		}
		if got, err := unpack(first.Reader()); err != nil || len(got) != 1 {
			t.Errorf("got %d files, error %v", len(got), err)
		}
	})
	t.Run("a failure is not kept", func(t *testing.T) {
		k, _ := newPacker(t)
		if _, err := k.Packed(t.Context(), []string{"beef"}); err == nil {
			t.Fatal("an unknown file was packed")
		}
		if k.recent.Len() != 0 {
			t.Error("it was kept")
		}
	})
	t.Run("a caller whose time is up does not wait", func(t *testing.T) {
		k, _ := newPacker(t)
		k.packing <- struct{}{} // another set is being packed
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := k.Packed(ctx, []string{sumOf(kubelet)}); !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v", err)
		}
		<-k.packing
	})
}
