package remote_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/remote"
)

const kubeletLog = `C:\var\log\kubelet\kubelet.log`

func TestRead_ReturnsRequestedPart(t *testing.T) {
	_, c := hostWith(t, nil, func(s *server) { s.disk.writeFile("C:/var/log/kubelet/kubelet.log", "0123456789") })
	for name, test := range map[string]struct {
		offset, most int64
		want         string
		from         int64
	}{
		"from an offset on":        {3, 4, "3456", 3},
		"to its end":               {8, 100, "89", 8},
		"behind its end":           {11, 100, "", 11},
		"its end":                  {-1, 4, "6789", 6},
		"all, if more is asked of": {-1, 100, "0123456789", 0},
	} {
		t.Run(name, func(t *testing.T) {
			part, err := c.Read(t.Context(), kubeletLog, test.offset, test.most)
			if err != nil || string(part.Body) != test.want || part.Offset != test.from || part.Size != 10 || part.Modified.IsZero() {
				t.Errorf("%+v, %v", part, err)
			}
		})
	}
	entries, err := c.List(t.Context(), `C:\var\log`)
	if err != nil || len(entries) != 1 || entries[0].Name() != "kubelet" || !entries[0].IsDir() {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

func TestRead_MissingFileIsNotExist(t *testing.T) {
	_, c := hostWith(t, nil)
	if _, err := c.Read(t.Context(), kubeletLog, 0, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a file: %v", err)
	}
	if _, err := c.List(t.Context(), `C:\var\log`); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a folder: %v", err)
	}
}

// The creator of a link on a host could otherwise choose the file that the operator reads.
func TestRead_LinkNotFollowed(t *testing.T) {
	for name, link := range map[string]string{"in place of the file": "C:/var/log/kubelet/kubelet.log", "in place of its folder": "C:/var/log/kubelet",
		"further above": "C:/var"} {
		t.Run(name, func(t *testing.T) {
			s, c := hostWith(t, nil, func(s *server) {
				s.disk.writeFile("C:/k/secret/log/kubelet/kubelet.log", "secret")
				s.disk.writeFile("C:/var/log/kubelet/kubelet.log", "log")
			})
			if err := errors.Join(os.RemoveAll(s.disk.localPath(link)),
				os.Symlink(s.disk.localPath("C:/k/secret"+strings.TrimPrefix(link, "C:/var")), s.disk.localPath(link))); err != nil {
				t.Fatal(err)
			}
			part, err := c.Read(t.Context(), kubeletLog, 0, 100)
			if err == nil || !strings.Contains(err.Error(), "symbolic links are not followed") || len(part.Body) > 0 {
				t.Errorf("it has read %q, %v", part.Body, err)
			}
		})
	}
}

func TestRead_EndlessFileReadUpToLimit(t *testing.T) {
	c := newHostileHost(t, entry{name: "kubelet.log", size: 1 << 60})
	if part, err := c.Read(t.Context(), `C:\kubelet.log`, 0, 1<<20); err != nil || len(part.Body) != 1<<20 || bytes.Count(part.Body, part.Body[:1]) != 1<<20 {
		t.Errorf("it has read %d bytes, %v", len(part.Body), err)
	}
	var e *remote.Error
	endless := newHostileHost(t, entry{name: "x", mode: fs.ModeDir, endless: true})
	if _, err := endless.List(t.Context(), `C:\var`); err == nil || errors.As(err, &e) && e.Message == "" {
		t.Errorf("a list without an end gives %v", err)
	}
}
