"""The forwarding table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from contrada.forwarding.arena import Arena
from contrada.forwarding.encode import Writer, as_ints, encode_constraint, encode_notifications
from contrada.forwarding.filter import as_filters
from contrada.forwarding.index import layout
from contrada.forwarding.index.adding import I_COUNT
from contrada.forwarding.index.changing import add_filters, remove_filter
from contrada.forwarding.index.layout import Index
from contrada.forwarding.index.matching import match_batch
from contrada.forwarding.index.verifying import Scratch, C_FOUND, C_PENDING, C_PAIRS
from contrada.forwarding.lock import ReadersWriter


class ForwardingTable:
    def __init__(self, **k: Any) -> None:
        self._lock = ReadersWriter()
        self.names: dict[str, int] = {}
        self.name_list=[None]
        self.ifaces: dict = {}
        self.iface_list=np.array([None]*16, object)
        A=Arena
        self.arenas = dict(operands=A(8,1024), filters=A(16,256), fields=A(8,1024), postings=A(2,4096), thresholds=A(4,4096), heads=A(0,1024), words=A(0,4096))
        self.interfaces=A(2,16)
        self.state=np.zeros(64,np.int64)
        s=self.state
        s[layout.S_OPERANDS]=1; s[layout.S_FILTERS]=1; s[layout.S_POSTINGS]=1; s[layout.S_THRESHOLDS]=1; s[layout.S_WORDS]=1
        s[layout.S_BUCKETS]=1; s[layout.S_BUCKET_MASK]=1
        self.events=np.zeros((1024,3),np.int64)
        self._rebuild()
        self.scratch=None

    def _rebuild(self):
        a={k:v.array for k,v in self.arenas.items()}
        self.index=Index(**a, text=a["words"].view(np.uint8), state=self.state)

    def _reserve(self, rows, filters, text):
        s=self.state; a=self.arenas
        self.index=None
        a["operands"].reserve(int(s[layout.S_OPERANDS])+4*rows+8)
        a["filters"].reserve(int(s[layout.S_FILTERS])+filters+1)
        a["fields"].reserve((len(self.name_list)+1)*16)
        a["postings"].reserve(int(s[layout.S_POSTINGS])+64*(3*rows+2*filters))
        a["thresholds"].reserve(int(s[layout.S_THRESHOLDS])+64*2*filters)
        a["heads"].reserve(int(s[layout.S_OPERANDS])+4*rows+8)
        a["words"].reserve(3*int(s[layout.S_WORDS])+ 512*rows + text)
        self.interfaces.reserve(len(self.ifaces)+2)
        self._rebuild()

    def add_many(self, pairs):
        w=Writer(); needed=[]; owners=[]; states=[]
        for iface, flt in pairs:
            i=self.ifaces.get(iface)
            if i is None:
                i=len(self.ifaces)+1
                self.ifaces[iface]=i
                if i>=len(self.iface_list):
                    self.iface_list=np.concatenate([self.iface_list, np.array([None]*len(self.iface_list),object)])
                self.iface_list[i]=iface
            for f in as_filters(flt):
                for c in f.constraints:
                    n=self.names.get(c.name)
                    if n is None:
                        n=self.names[c.name]=len(self.names)+1
                        self.name_list.append(c.name)
                    encode_constraint(w,n,c,None)
                w.end(); needed.append(w.ends[-1]); owners.append(i); states.append(layout.ACTIVE)
        b=w.batch()
        self._reserve(len(b.rows), len(b.ends), len(b.text))
        made=np.empty(len(b.ends),np.int64)
        ev=np.zeros((len(b.rows)*4+16,3),np.int64)
        self.state[layout.S_EVENTS]=0
        add_filters(self.index,self.interfaces.array,b,as_ints(needed),as_ints(owners),as_ints(states),ev,np.empty(2*len(b.rows)+2,np.int64),made)
        return made

    def remove(self, f):
        self._reserve(16,1,0)
        self.state[layout.S_EVENTS]=0
        remove_filter(self.index,self.interfaces.array,f,self.events)

    def match_many(self, notes, whole=False):
        b,v=encode_notifications(notes,self.names)
        if self.scratch is None or self.scratch.stamps.shape[0]<=len(self.ifaces):
            self.scratch=Scratch(np.zeros(len(self.ifaces)+16,np.int64),np.zeros(1<<22,np.int64),np.zeros(1<<18,np.int64),np.zeros(1<<12,np.int64),np.zeros((64,8),np.int64),np.zeros(128,np.int64),np.zeros((1024,3),np.int64),np.zeros((1024,3),np.int64),np.zeros(8,np.int64))
        s=self.scratch
        s.cursor[C_FOUND]=s.cursor[C_PENDING]=s.cursor[C_PAIRS]=0
        ends=np.empty(len(b.ends),np.int64)
        r=match_batch(self.index,b,np.zeros(0,np.int64),np.zeros(max(1,len(v.values)),np.int64),s,ends,0,whole)
        assert r==len(b.ends)
        found=s.found[:s.cursor[C_FOUND]]
        if whole:
            out=[];i=0
            for e in ends.tolist():
                out.append(sorted(found[i:e].tolist())); i=e
            return out
        objs=self.iface_list[found].tolist()
        out=[];i=0
        for e in ends.tolist():
            out.append(set(objs[i:e])); i=e
        return out
