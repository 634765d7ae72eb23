package absence

import (
	"testing"
	"time"
)

func TestAnAbsenceCountsWhenItHasLasted(t *testing.T) {
	began := time.Unix(1<<30, 0)
	var there Absence
	if there.Began() || there.Left(began, Grace) > 0 {
		t.Error("an object that is there is absent")
	}
	absent := there.Continued(began)
	if left := absent.Left(began, Grace); !absent.Began() || left != Grace {
		t.Errorf("at first %s are left", left)
	}
	later := began.Add(Grace - time.Second)
	absent = absent.Continued(later)
	if left := absent.Left(later, Grace); left != time.Second {
		t.Errorf("seen again later, %s are left", left)
	}
	if left := absent.Left(began.Add(Grace), Grace); left > 0 {
		t.Errorf("at its end %s are left", left)
	}
}
