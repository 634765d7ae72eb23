package remote_test

import "testing"

func TestHas(t *testing.T) {
	s, c := hostWith(t, nil)
	s.disk.writeFile("C:/k/wicd/inbox/payload.zst", "12345")
	for path, want := range map[string]bool{
		`C:\k\wicd\inbox\payload.zst`: true,
		`C:\k\wicd\inbox\other.zst`:   false,
		`C:\k\wicd\inbox`:             false,
		`C:\not\there\payload.zst`:    false,
	} {
		if exists, err := c.Has(t.Context(), path, 5); err != nil || exists != want {
			t.Errorf("%s: %t, %v", path, exists, err)
		}
	}
	if exists, err := c.Has(t.Context(), `C:\k\wicd\inbox\payload.zst`, 6); err != nil || exists {
		t.Errorf("a file of another size counts as there: %v", err)
	}
}

//
func TestRemoveEmpty(t *testing.T) {
	t.Run("deletes an empty folder", func(t *testing.T) {
		s, c := hostWith(t, nil)
		s.disk.writeFile("C:/k/wicd/a", "x")
		if err := c.Remove(t.Context(), `C:\k\wicd`); err != nil {
			t.Fatal(err)
		}
		if err := c.RemoveEmpty(t.Context(), `C:\k`); err != nil || s.disk.hasFile("C:/k") {
			t.Errorf("the folder is still there (%v)", err)
		}
	})
	t.Run("leaves a folder with something in it, and that", func(t *testing.T) {
		s, c := hostWith(t, nil)
		s.disk.writeFile("C:/k/inventory.txt", "x")
		if err := c.RemoveEmpty(t.Context(), `C:\k`); err != nil || !s.disk.hasFile("C:/k/inventory.txt") {
			t.Errorf("the owner's file is gone (%v)", err)
		}
	})
	t.Run("does nothing about a folder that is not there", func(t *testing.T) {
		_, c := hostWith(t, nil)
		if err := c.RemoveEmpty(t.Context(), `C:\k`); err != nil {
			t.Error(err)
		}
	})
}
